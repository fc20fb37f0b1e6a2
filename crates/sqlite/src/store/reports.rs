//! Taking in what a destination reports later of the messages it took.

use postbox_core::delivery::DestinationName;
use postbox_core::event::{LaneId, OutboxId};
use postbox_core::reports::{MessageReport, MessageStatus, ORIGIN_HEADER, ReportPolicy, ReportsTaken};
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, named_params};

use super::clock::{self, Millis};
use super::event::{optional_text, text};
use super::failure::Attempt;
use super::heads::TouchedLanes;

/// Takes in what one call brought, in one transaction.
pub(crate) fn take_in(
    connection: &mut Connection,
    reports: &[MessageReport],
    policy: &ReportPolicy,
) -> Attempt<ReportsTaken> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let now = clock::now(&transaction)?;
    let mut taken = ReportsTaken::default();
    for report in reports {
        take_in_one(&transaction, report, policy, now, &mut taken)?;
    }
    transaction.commit()?;
    Ok(taken)
}

/// The event that a report is about.
struct About {
    id: OutboxId,
    event_id: String,
    aggregate_id: String,
    origin: Option<String>,
    tenant: Option<String>,
}

impl About {
    fn find(
        transaction: &Connection,
        report: &MessageReport,
        policy: &ReportPolicy,
    ) -> rusqlite::Result<Option<Self>> {
        let read = |row: &Row<'_>| {
            Ok(Self {
                id: row.get("id")?,
                event_id: text(row, "event_id")?,
                aggregate_id: text(row, "aggregate_id")?,
                origin: optional_text(row, "origin")?,
                tenant: optional_text(row, "tenant")?,
            })
        };
        let origin = format!("$.\"{ORIGIN_HEADER}\"");
        if let Some(mark) = report.mark {
            let marked = transaction
                .prepare_cached(include_str!("sql/marked_event.sql"))?
                .query_row(named_params! { ":event_id": mark.event_id.to_string(), ":origin": origin }, read)
                .optional()?;
            if marked.is_some() {
                return Ok(marked);
            }
        }
        transaction
            .prepare_cached(include_str!("sql/named_event.sql"))?
            .query_row(
                named_params! {
                    ":external_id": report.external_id,
                    ":destinations": json_list(&policy.destinations),
                    ":origin": origin,
                },
                read,
            )
            .optional()
    }
}

fn take_in_one(
    transaction: &Connection,
    report: &MessageReport,
    policy: &ReportPolicy,
    now: Millis,
    taken: &mut ReportsTaken,
) -> rusqlite::Result<()> {
    let about = About::find(transaction, report, policy)?;
    let inserted =
        transaction.prepare_cached(include_str!("sql/record_report.sql"))?.execute(named_params! {
            ":external_id": report.external_id,
            ":status": report.status.as_str(),
            ":reported_at": report.at.as_millisecond(),
            ":now": now,
            ":outbox_id": about.as_ref().map(|about| about.id),
            ":attempt": report.mark.map(|mark| mark.attempt),
            ":error_code": report.error.as_ref().map(|error| error.0),
            ":error": report.error.as_ref().map(|error| &error.1),
        })?;
    if inserted == 0 {
        taken.repeated += 1;
        return Ok(());
    }
    taken.recorded += 1;
    let Some(about) = about else {
        taken.unmatched += 1;
        return Ok(());
    };
    if let Some(mark) = report.mark
        && resolve(transaction, &about, report, mark.attempt, policy, now)?
    {
        taken.resolved += 1;
    }
    if policy.follow_ups.contains(&report.status) && is_step(transaction, report)? {
        enqueue(transaction, &about, report)?;
        taken.enqueued += 1;
    }
    Ok(())
}

/// Settles the delivery that the report proves; whether there was one.
fn resolve(
    transaction: &Connection,
    about: &About,
    report: &MessageReport,
    attempt: u32,
    policy: &ReportPolicy,
    now: Millis,
) -> rusqlite::Result<bool> {
    let found: Option<(LaneId, DestinationName)> = transaction
        .prepare_cached(include_str!("sql/resolve.sql"))?
        .query_row(
            named_params! {
                ":id": about.id,
                ":destinations": json_list(&policy.destinations),
                ":attempt": attempt,
                ":external_id": report.external_id,
                ":now": now,
            },
            |row| Ok((row.get("lane_id")?, text(row, "destination")?.into())),
        )
        .optional()?;
    let Some((lane_id, destination)) = found else { return Ok(false) };
    let mut touched = TouchedLanes::default();
    touched.insert(lane_id, &destination);
    touched.restore_heads(transaction, now)?;
    Ok(true)
}

/// Whether no status as far as this one was recorded before.
fn is_step(transaction: &Connection, report: &MessageReport) -> rusqlite::Result<bool> {
    let mut statement =
        transaction.prepare_cached("SELECT status FROM outbox_report WHERE external_id = ?1")?;
    let mut rows = statement.query([&report.external_id])?;
    let rank = |status| MessageStatus::ALL.iter().position(|&other| other == status);
    while let Some(row) = rows.next()? {
        if MessageStatus::parse(&text(row, 0)?).and_then(rank) > rank(report.status) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn enqueue(transaction: &Connection, about: &About, report: &MessageReport) -> rusqlite::Result<()> {
    let error =
        report.error.as_ref().map(|(code, title)| serde_json::json!({ "code": code, "title": title }));
    let at = report.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let tenant = about.tenant.as_ref().map(|tenant| serde_json::json!({ "tenant": tenant }).to_string());
    transaction.prepare_cached(include_str!("sql/follow_up.sql"))?.execute(named_params! {
        ":origin": about.origin,
        ":event_id": about.event_id,
        ":aggregate_id": about.aggregate_id,
        ":event_type": format!("whatsapp.status.{}", report.status.as_str()),
        ":external_id": report.external_id,
        ":status": report.status.as_str(),
        ":at": at,
        ":error": error.map(|error| error.to_string()),
        ":headers": tenant,
    })?;
    Ok(())
}

fn json_list(texts: &[String]) -> String {
    // Texts are always JSON.
    serde_json::to_string(texts).unwrap_or_else(|_| "[]".to_owned())
}
