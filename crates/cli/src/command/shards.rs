//! `postbox shards`: which relay works on which share of the aggregates.

use clap::Args;
use postbox_core::operations::ShardStatus;

use crate::cli::Global;
use crate::database::{Database, Target};
use crate::error::CommandError;
use crate::moment::show_age;
use crate::output::{say, say_json, table};

/// List the shards: who owns each, since when, and what is left of the owner's lease.
#[derive(Debug, Args)]
pub(crate) struct Shards {
    /// Print JSON; docs/configuration.md names its fields.
    #[arg(long)]
    json: bool,
}

impl Shards {
    pub(crate) async fn run(&self, global: &Global) -> Result<(), CommandError> {
        let database = Database::open(&Target::find(global)?)?;
        let shards = database.operations().shards().await?;
        if self.json { say_json(&serde_json::json!({ "shards": shards })) } else { say(render(&shards)) }
    }
}

fn render(shards: &[ShardStatus]) -> String {
    let rows = shards.iter().map(|shard| match &shard.owner {
        Some(owner) => [
            shard.shard.to_string(),
            owner.label.clone(),
            shard.epoch.to_string(),
            show_age(owner.held_seconds),
            show_left(owner.lease_seconds),
        ],
        None => [shard.shard.to_string(), "-".into(), shard.epoch.to_string(), "-".into(), "-".into()],
    });
    table(["SHARD", "RELAY", "EPOCH", "HELD", "LEASE LEFT"], rows)
}

/// What is left of a lease, as `postbox status` shows it too.
pub(super) fn show_left(seconds: f64) -> String {
    if seconds < 0.0 { "run out".into() } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use postbox_core::operations::ShardOwner;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn owned_free_and_abandoned_shards_can_be_told_apart() {
        let owner = |lease_seconds| ShardOwner {
            relay: Uuid::from_u128(1),
            label: "web-1:4711".into(),
            held_seconds: 75.0,
            lease_seconds,
        };
        let shards = [
            ShardStatus { shard: 0, epoch: 3, owner: Some(owner(12.34)) },
            ShardStatus { shard: 1, epoch: 4, owner: Some(owner(-0.5)) },
            ShardStatus { shard: 2, epoch: 0, owner: None },
        ];
        let expected = "\
SHARD  RELAY       EPOCH  HELD        LEASE LEFT
0      web-1:4711  3      1 min 15 s  12.3 s
1      web-1:4711  4      1 min 15 s  run out
2      -           0      -           -";
        assert_eq!(render(&shards), expected);
    }
}
