//! The relay's reads: the to-do list, busy aggregates, parked lanes that are due, payloads.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use postbox_core::delivery::{DeliveryState, DestinationName, ParkedDelivery, ParkedLane};
use postbox_core::event::{Event, OutboxId, Payload, Shard};
use postbox_core::outcome::FailureClass;
use postbox_core::store::{
    Arrival, DueRequest, RefillRequest, Scan, ScanRequest, ScanRow, ShardScan, ShardScanned, StoreError,
    StoreErrorKind, StoreResult,
};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use uuid::Uuid;

use crate::horizon::Look;
use crate::store::PostgresStore;

impl PostgresStore {
    pub(crate) async fn read_todo(&self, request: &ScanRequest) -> StoreResult<Scan> {
        let scan = self.scan_pending(request).await;
        self.taken_in(scan)
    }

    async fn scan_pending(&self, request: &ScanRequest) -> StoreResult<Scan> {
        let mark_beyond = self.horizon().mark_beyond(Instant::now());
        let wants_writers = self.horizon().wants_writers(Instant::now());
        let shards: Vec<i16> = request.shards.iter().map(|scan| sql_shard(scan.shard)).collect();
        let above = |scan: &ShardScan| self.horizon().scan_above(scan.floor, scan.cursor);
        let floors: Vec<i64> = request.shards.iter().map(above).collect();
        let cursors: Vec<i64> = request.shards.iter().map(|scan| scan.cursor).collect();
        let rows_per_shard = sql_count(request.rows_per_shard);
        let rows_per_lane = sql_count(request.rows_per_lane);

        let (look, rows) = self
            .reads
            .take()
            .await?
            .query_both(
                "read the to-do list",
                (&self.statements.horizon, &[(&mark_beyond, Type::INT8), (&wants_writers, Type::BOOL)]),
                (
                    &self.statements.scan,
                    &[
                        (&shards, Type::INT2_ARRAY),
                        (&floors, Type::INT8_ARRAY),
                        (&cursors, Type::INT8_ARRAY),
                        (&rows_per_shard, Type::INT4),
                        (&rows_per_lane, Type::INT4),
                        (&request.saturated, Type::INT8_ARRAY),
                    ],
                ),
            )
            .await?;

        // The look was answered before the scan began, so what was decided then is what the scan shows.
        let look = look.first().ok_or_else(|| unreadable("the horizon", None)).and_then(read_look)?;
        let decided = self.horizon().see(look, Instant::now());
        let mut found = Found::with_capacity(rows.len());
        for row in &rows {
            found.add(row)?;
        }
        Ok(found.into_scan(request, decided))
    }

    /// What is read of the to-do list and not taken in must be read again, so nothing is left out of the next scan.
    fn taken_in<T>(&self, read: StoreResult<T>) -> StoreResult<T> {
        if read.is_err() {
            self.horizon().connection_lost();
        }
        read
    }

    pub(crate) async fn load_events(&self, ids: &[(Shard, OutboxId)]) -> StoreResult<Vec<Arrival>> {
        let arrivals = self.load_arrivals(ids).await;
        self.taken_in(arrivals)
    }

    async fn load_arrivals(&self, ids: &[(Shard, OutboxId)]) -> StoreResult<Vec<Arrival>> {
        let shards: Vec<i16> = ids.iter().map(|&(shard, _)| sql_shard(shard)).collect();
        let ids: Vec<i64> = ids.iter().map(|&(_, id)| id).collect();
        let rows = self
            .reads
            .query(
                "read events",
                &self.statements.load,
                &[(&shards, Type::INT2_ARRAY), (&ids, Type::INT8_ARRAY)],
            )
            .await?;
        let mut arrivals = read_arrivals(&rows)?;
        arrivals.sort_by_key(|arrival| arrival.event.id);
        Ok(arrivals)
    }

    pub(crate) async fn refill_aggregate(&self, request: &RefillRequest) -> StoreResult<Vec<Arrival>> {
        let rows = self
            .reads
            .query(
                "read the next events of an aggregate",
                &self.statements.refill,
                &[
                    (&sql_shard(request.shard), Type::INT2),
                    (&request.aggregate_type, Type::TEXT),
                    (&request.aggregate_id, Type::TEXT),
                    (&request.after_seq, Type::INT8),
                    (&sql_count(request.limit), Type::INT4),
                ],
            )
            .await?;
        read_arrivals(&rows)
    }

    pub(crate) async fn due_lanes(&self, request: &DueRequest) -> StoreResult<Vec<ParkedLane>> {
        let shards: Vec<i16> = request.shards.iter().map(|&shard| sql_shard(shard)).collect();
        let names: Vec<&str> = request.destinations.iter().map(|(name, _)| &**name).collect();
        let lanes: Vec<i32> = request.destinations.iter().map(|&(_, lanes)| sql_count(lanes)).collect();
        let rows = self
            .reads
            .query(
                "read due deliveries",
                &self.statements.due,
                &[
                    (&shards, Type::INT2_ARRAY),
                    (&names, Type::TEXT_ARRAY),
                    (&lanes, Type::INT4_ARRAY),
                    (&sql_count(request.rows_per_lane), Type::INT4),
                ],
            )
            .await?;
        let known: HashMap<&str, &DestinationName> =
            request.destinations.iter().map(|(name, _)| (&**name, name)).collect();
        let mut due: Vec<ParkedLane> = Vec::new();
        for row in &rows {
            let (name, delivery) = read_parked(row)?;
            let lane_id = delivery.event.lane_id;
            match due.last_mut() {
                Some(lane) if lane.lane_id == lane_id && *lane.destination == *name => {
                    lane.deliveries.push(delivery);
                }
                _ => due.push(ParkedLane {
                    destination: known
                        .get(&*name)
                        .map_or_else(|| Arc::from(&*name), |&name| Arc::clone(name)),
                    lane_id,
                    deliveries: vec![delivery],
                }),
            }
        }
        Ok(due)
    }

    pub(crate) async fn read_payload(&self, id: OutboxId) -> StoreResult<Option<String>> {
        let rows =
            self.others.query("read a payload", &self.statements.payload, &[(&id, Type::INT8)]).await?;
        rows.first().map(|row| Columns::of(row, "a payload").next()).transpose()
    }

    fn horizon(&self) -> std::sync::MutexGuard<'_, crate::horizon::Horizon> {
        self.horizon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows of a scan, and per shard how far beyond its cursor they reach.
struct Found {
    rows: Vec<ScanRow>,
    beyond: HashMap<Shard, (u32, OutboxId)>,
}

impl Found {
    fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), beyond: HashMap::new() }
    }

    fn add(&mut self, row: &Row) -> StoreResult<()> {
        let mut columns = Columns::of(row, "the to-do list");
        let shard = columns.shard()?;
        let id: OutboxId = columns.next()?;
        let lane_id = columns.next()?;
        if columns.next()? {
            let (count, last) = self.beyond.entry(shard).or_insert((0, id));
            *count += 1;
            *last = id.max(*last);
        }
        let arrival = match columns.peek::<Option<OutboxId>>()? {
            Some(_) => Some(read_arrival(&mut columns)?),
            None => None,
        };
        self.rows.push(ScanRow { shard, id, lane_id, arrival });
        Ok(())
    }

    fn into_scan(mut self, request: &ScanRequest, decided: OutboxId) -> Scan {
        self.rows.sort_unstable_by_key(|row| (row.shard, row.id));
        let shards = request
            .shards
            .iter()
            .map(|asked| {
                let (count, last) = self.beyond.get(&asked.shard).copied().unwrap_or((0, asked.cursor));
                let more = count >= request.rows_per_shard;
                let seen = if more { decided.min(last) } else { decided };
                ShardScanned {
                    shard: asked.shard,
                    cursor: last.max(asked.cursor),
                    floor: seen.max(asked.floor),
                    more,
                }
            })
            .collect();
        Scan { rows: self.rows, shards }
    }
}

fn read_look(row: &Row) -> StoreResult<Look> {
    let mut columns = Columns::of(row, "the horizon");
    Ok(Look {
        oldest_running: columns.next()?,
        last_id: columns.next()?,
        mark: columns.next()?,
        writers: columns.next()?,
    })
}

fn read_arrivals(rows: &[Row]) -> StoreResult<Vec<Arrival>> {
    rows.iter().map(|row| read_arrival(&mut Columns::of(row, "an event"))).collect()
}

fn read_arrival(columns: &mut Columns<'_>) -> StoreResult<Arrival> {
    let event = read_event(columns)?;
    let due_in = columns.seconds()?.unwrap_or_default();
    let expires_in = columns.seconds()?;
    let blocked: Vec<&str> = columns.next()?;
    Ok(Arrival {
        event: Arc::new(event),
        blocked: blocked.into_iter().map(Arc::from).collect(),
        due_in,
        expires_in,
    })
}

/// The first twelve columns of `outbox_arrival`.
fn read_event(columns: &mut Columns<'_>) -> StoreResult<Event> {
    let id = columns.next()?;
    let event_id: Uuid = columns.next()?;
    let lane_id = columns.next()?;
    let shard = columns.shard()?;
    let aggregate_type = columns.next()?;
    let aggregate_id = columns.next()?;
    let aggregate_seq = columns.next()?;
    let event_type = columns.next()?;
    let text: Option<String> = columns.next()?;
    let payload_bytes: i32 = columns.next()?;
    let headers = columns.next()?;
    let created_at: Timestamp = columns.next()?;
    let payload = text
        .map_or_else(|| Payload::Deferred(u64::try_from(payload_bytes).unwrap_or_default()), Payload::Inline);
    Ok(Event {
        id,
        event_id,
        lane_id,
        shard,
        aggregate_type,
        aggregate_id,
        aggregate_seq,
        event_type,
        payload,
        headers,
        created_at,
    })
}

fn read_parked(row: &Row) -> StoreResult<(String, ParkedDelivery)> {
    let mut columns = Columns::of(row, "a parked delivery");
    let event = Arc::new(read_event(&mut columns)?);
    let due_in = columns.seconds()?.unwrap_or_default();
    let expires_in = columns.seconds()?;
    let destination = columns.next()?;
    let state: &str = columns.next()?;
    let state = DeliveryState::parse(state).ok_or_else(|| unreadable("a delivery's state", None))?;
    let attempts: i32 = columns.next()?;
    let uncounted: i32 = columns.next()?;
    let replays: i32 = columns.next()?;
    let last_class: Option<&str> = columns.next()?;
    let delivery = ParkedDelivery {
        event,
        attempts: u32::try_from(attempts).unwrap_or_default(),
        uncounted: u32::try_from(uncounted).unwrap_or_default(),
        state,
        due_in,
        expires_in,
        replay: replays > 0,
        maybe_delivered: last_class == Some(FailureClass::Unknown.as_str()),
    };
    Ok((destination, delivery))
}

/// Reads a row's columns from left to right.
pub(crate) struct Columns<'row> {
    row: &'row Row,
    next: usize,
    what: &'static str,
}

impl<'row> Columns<'row> {
    pub(crate) fn of(row: &'row Row, what: &'static str) -> Self {
        Self { row, next: 0, what }
    }

    pub(crate) fn next<T: FromSql<'row>>(&mut self) -> StoreResult<T> {
        let value = self.peek()?;
        self.next += 1;
        Ok(value)
    }

    pub(crate) fn peek<T: FromSql<'row>>(&self) -> StoreResult<T> {
        self.row.try_get(self.next).map_err(|error| unreadable(self.what, Some(error)))
    }

    pub(crate) fn shard(&mut self) -> StoreResult<Shard> {
        let shard: i16 = self.next()?;
        Shard::try_from(shard).map_err(|_| unreadable("a shard", None))
    }

    /// A count that the database keeps as a signed number.
    pub(crate) fn count<T: TryFrom<i64>>(&mut self) -> StoreResult<T> {
        let count: i64 = self.next()?;
        T::try_from(count).map_err(|_| unreadable(self.what, None))
    }

    /// Seconds, as a duration; far more than a lifetime is cut off.
    fn seconds(&mut self) -> StoreResult<Option<Duration>> {
        let seconds: Option<f64> = self.next()?;
        Ok(seconds.map(|seconds| Duration::try_from_secs_f64(seconds.clamp(0.0, 1e10)).unwrap_or_default()))
    }
}

/// The database answered in a form that this program does not understand.
pub(crate) fn unreadable(what: &str, error: Option<tokio_postgres::Error>) -> StoreError {
    let mut unreadable = StoreError::new(
        StoreErrorKind::Internal,
        format!("{what} as stored cannot be read; was the table changed by hand?"),
    );
    unreadable.source = error.map(Into::into);
    unreadable
}

pub(crate) fn sql_shard(shard: Shard) -> i16 {
    i16::try_from(shard).unwrap_or(i16::MAX)
}

pub(crate) fn sql_count(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
