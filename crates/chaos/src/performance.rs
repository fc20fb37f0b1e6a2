//! One run: trouble for a while, then calm in which everything drains, then the verdict.

use std::sync::Arc;
use std::time::Duration;

use postbox_testkit::faults::Dice;
use postbox_testkit::proxy::Weather;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::audience::{Audience, Mood};
use crate::evidence::Evidence;
use crate::fleet::{Fleet, Timing};
use crate::journal::Journal;
use crate::plan::Plan;
use crate::shop::Shop;
use crate::stage::Stage;
use crate::tracks::{self, Link, Theatre};
use crate::verdict::{Case, Verdict};

/// Relays side by side.
const RELAYS: usize = 3;

/// Longest calm: what is not drained by then never will be.
const LONGEST_CALM: Duration = Duration::from_secs(120);

/// How a run is to be.
#[derive(Debug, Clone, Copy)]
pub struct Performance {
    /// Decides the plan of troubles and all dice.
    pub seed: u64,
    /// How long there is trouble.
    pub lasting: Duration,
    /// Pause of a producer after a transaction, on the average; there are four.
    pub producer_pause: Duration,
    /// How often progress is told.
    pub progress: Duration,
}

/// Runs it. Progress goes to standard error.
///
/// # Panics
/// When PostgreSQL is not installed, `postbox` cannot be built, or something of the machine fails that is not on trial.
pub async fn perform(performance: Performance) -> Verdict {
    let Performance { seed, lasting, .. } = performance;
    let timing = Timing::default();
    let plan = Plan::new(seed, lasting, RELAYS, timing.lease);
    let mut dice = Dice::new(!seed);
    eprintln!("seed {seed}: {} troubles planned for {lasting:?}", plan.len());

    let stage = tokio::task::spawn_blocking(Stage::build).await.expect("the database is set up");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let audience = Audience::gather(folder.path(), Mood::Good, dice.roll(), timing.attempt).await;
    let fleet = Fleet::build(RELAYS, folder.path(), &stage, audience.address(), timing).await;
    fleet.berths().for_each(|mut berth| berth.start());
    let shop = Shop::open(&stage.url(), dice.roll(), performance.producer_pause);
    let curtain = Instant::now() + lasting;
    let theatre = Arc::new(Theatre { stage, fleet, audience, journal: Journal::default(), timing, curtain });

    play(&theatre, plan, performance.progress).await;
    eprintln!("calm");
    let calm = Instant::now();
    let takings = shop.close().await;
    calm_down(&theatre);
    let drained = drain(&theatre, calm + LONGEST_CALM).await;
    let drained_after = calm.elapsed();
    eprintln!("drained after {drained_after:.1?}: {drained}");
    for number in 0..RELAYS {
        let end = theatre.stop(number).await;
        if end.and_then(|end| end.code()) != Some(0) {
            theatre.journal.defect(format!("the last relay of berth {number} ended with {end:?}"));
        }
    }

    let kept = Arc::clone(&theatre);
    let evidence = tokio::task::spawn_blocking(move || Evidence::take(&kept.stage)).await;
    let evidence = evidence.expect("the database can be read");
    let case = Case { performance, theatre: &theatre, takings: &takings, evidence: &evidence };
    Verdict::reach(&case, drained.then_some(drained_after))
}

/// All tracks beside each other, until the last of them is done.
async fn play(theatre: &Arc<Theatre>, plan: Plan, progress: Duration) {
    let mut tracks = JoinSet::new();
    for (number, track) in plan.processes.into_iter().enumerate() {
        tracks.spawn(tracks::play_processes(Arc::clone(theatre), number, track));
    }
    for (number, track) in plan.database_links.into_iter().enumerate() {
        tracks.spawn(tracks::play_link(Arc::clone(theatre), number, Link::Database, track));
    }
    for (number, track) in plan.receiver_links.into_iter().enumerate() {
        tracks.spawn(tracks::play_link(Arc::clone(theatre), number, Link::Receiver, track));
    }
    tracks.spawn(tracks::play_database(Arc::clone(theatre), plan.database));
    tracks.spawn(tracks::play_receiver(Arc::clone(theatre), plan.receiver));
    let began = Instant::now();
    let mut told = tokio::time::interval_at(began + progress, progress);
    loop {
        tokio::select! {
            done = tracks.join_next() => match done {
                Some(done) => done.expect("a track is played to its end"),
                None => return,
            },
            _ = told.tick() => {
                let troubles: usize = theatre.journal.troubles().values().sum();
                let requests = theatre.audience.count();
                eprintln!("{:5.0} s  {requests} requests, {troubles} troubles", began.elapsed().as_secs_f64());
            }
        }
    }
}

fn calm_down(theatre: &Theatre) {
    theatre.audience.set_mood(Mood::Perfect);
    for berth in theatre.fleet.berths() {
        berth.database_link().set_weather(Weather::Clear);
        berth.receiver_link().set_weather(Weather::Clear);
    }
}

/// Waits until nothing is left to do; tells whether that came true in time.
async fn drain(theatre: &Arc<Theatre>, until: Instant) -> bool {
    while Instant::now() < until {
        for number in 0..RELAYS {
            theatre.ensure_running(number);
        }
        let kept = Arc::clone(theatre);
        let unfinished = tokio::task::spawn_blocking(move || kept.stage.unfinished()).await;
        if unfinished.expect("the database answers") == 0 {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    false
}
