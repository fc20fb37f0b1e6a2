//! Taking in reports: one call of `outbox_take_in_reports`, one round trip and one transaction.

use async_trait::async_trait;
use postbox_core::reports::{MessageReport, ReportPolicy, Reports, ReportsTaken};
use postbox_core::store::StoreResult;
use tokio_postgres::types::Type;

use crate::reading::{Columns, unreadable};
use crate::store::PostgresStore;

#[async_trait]
impl Reports for PostgresStore {
    async fn take_in(&self, reports: &[MessageReport], policy: &ReportPolicy) -> StoreResult<ReportsTaken> {
        let column = |of: &dyn Fn(&MessageReport) -> String| reports.iter().map(of).collect::<Vec<_>>();
        let names = column(&|report| report.external_id.clone());
        let statuses = column(&|report| report.status.as_str().to_owned());
        let follow_ups: Vec<&str> = policy.follow_ups.iter().map(|status| status.as_str()).collect();
        let moments: Vec<_> = reports.iter().map(|report| report.at).collect();
        let events: Vec<_> = reports.iter().map(|report| report.mark.map(|mark| mark.event_id)).collect();
        let attempts: Vec<Option<i32>> = reports
            .iter()
            .map(|report| report.mark.and_then(|mark| i32::try_from(mark.attempt).ok()))
            .collect();
        let codes: Vec<Option<i32>> =
            reports.iter().map(|report| report.error.as_ref().map(|error| error.0)).collect();
        let reasons: Vec<Option<&str>> =
            reports.iter().map(|report| report.error.as_ref().map(|error| &*error.1)).collect();
        let statement = "SELECT * FROM @.outbox_take_in_reports($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let rows = self
            .operate(
                "record reports",
                statement,
                &[
                    (&policy.destinations, Type::TEXT_ARRAY),
                    (&follow_ups, Type::TEXT_ARRAY),
                    (&names, Type::TEXT_ARRAY),
                    (&statuses, Type::TEXT_ARRAY),
                    (&moments, Type::TIMESTAMPTZ_ARRAY),
                    (&events, Type::UUID_ARRAY),
                    (&attempts, Type::INT4_ARRAY),
                    (&codes, Type::INT4_ARRAY),
                    (&reasons, Type::TEXT_ARRAY),
                ],
            )
            .await?;
        let row = rows.first().ok_or_else(|| unreadable("what became of reports", None))?;
        let mut columns = Columns::of(row, "what became of reports");
        Ok(ReportsTaken {
            recorded: columns.count()?,
            repeated: columns.count()?,
            unmatched: columns.count()?,
            resolved: columns.count()?,
            enqueued: columns.count()?,
        })
    }
}
