//! Tables for people, JSON for programs.

use std::path::Path;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::race::{Metric, Race, Summary};
use crate::stage::Conditions;

/// One table per race: a column per contender, a row per metric.
pub(crate) fn print(race: &Race) {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(
        std::iter::once(String::new()).chain(race.contenders.iter().map(|contender| contender.name.clone())),
    );
    for metric in race.metrics() {
        let cells = race.contenders.iter().map(|contender| match contender.summary(metric) {
            Some(summary) => cell(metric, summary, race, &contender.name),
            None => String::new(),
        });
        table.add_row(std::iter::once(metric.name.to_owned()).chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("\n{}: {}", race.name, race.title);
    println!("{table}");
    println!("median (lowest – highest), × ratio to \"{}\"", race.opponent);
    for note in &race.notes {
        println!("- {note}");
    }
}

fn cell(metric: &Metric, summary: Summary, race: &Race, contender: &str) -> String {
    let number = |value| number(value, metric.decimals);
    let Summary { median, min, max } = summary;
    let mut text = format!("{} ({} – {})", number(median), number(min), number(max));
    if contender != race.opponent
        && let Some(ratio) = race.ratio(contender, metric)
    {
        text.push_str(&format!("\n× {ratio:.2}"));
    }
    text
}

/// A number with its thousands set apart.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut grouped = String::new();
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n) % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Everything that was measured, sample by sample.
pub(crate) fn write_json(path: &Path, conditions: &Conditions, races: &[Race]) -> Outcome<()> {
    let races: Vec<Value> = races.iter().map(race_json).collect();
    let document = json!({ "conditions": conditions, "races": races });
    std::fs::write(path, serde_json::to_string_pretty(&document)? + "\n")?;
    Ok(())
}

fn race_json(race: &Race) -> Value {
    let metrics = race.metrics();
    let contenders: Vec<Value> = race
        .contenders
        .iter()
        .map(|contender| {
            let mut summaries = Map::new();
            let mut ratios = Map::new();
            for metric in &metrics {
                if let Some(summary) = contender.summary(metric) {
                    summaries.insert(metric.name.to_owned(), json!(summary));
                }
                if let Some(ratio) = race.ratio(&contender.name, metric) {
                    ratios.insert(metric.name.to_owned(), json!(ratio));
                }
            }
            let samples: Vec<Map<String, Value>> = contender
                .samples
                .iter()
                .map(|sample| {
                    sample.iter().map(|(metric, value)| (metric.name.to_owned(), json!(value))).collect()
                })
                .collect();
            json!({ "name": contender.name, "summary": summaries, "ratio": ratios, "samples": samples })
        })
        .collect();
    json!({
        "name": race.name, "title": race.title, "opponent": race.opponent, "contenders": contenders, "notes": race.notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(number(1_234_567.891, 1), "1,234,567.9");
        assert_eq!(number(999.0, 0), "999");
        assert_eq!(number(-1_000.0, 0), "-1,000");
        assert_eq!(number(0.5, 2), "0.50");
    }
}
