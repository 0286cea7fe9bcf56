//! `--prices FILE`: what each size of near costs, and which sizes nobody beats.

use crate::exit::refuse;
use crate::files::advice::Costs;
use nearfar_core::advise::advice::Advice;
use nearfar_core::advise::machine::{Far, Machine};
use nearfar_core::advise::prices::{Priced, Prices};
use nearfar_core::profile::summary::Summary;
use nearfar_core::units::Bytes;
use std::fmt::Write;
use std::path::Path;

const EXAMPLE: &str = "docs/how-to/how-much-dram.md has an example";

/// The file at `path`.
///
/// # Errors
/// A refusal that says what is wrong with it.
pub fn read(path: &Path) -> anyhow::Result<Prices> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| refuse(format_args!("--prices {shown}: {error}")))?;
    let prices: Prices = toml::from_str(&text).map_err(|error| refuse(format_args!("--prices {shown}: {error}{EXAMPLE}")))?;
    prices.check().map_err(|error| refuse(format_args!("--prices {shown}: {error} ({EXAMPLE})")))?;
    Ok(prices)
}

/// All sizes of the curve with their prices.
///
/// # Errors
/// A refusal: what is no price.
pub fn priced(prices: &Prices, summary: &Summary, machine: &Machine, advice: &Advice) -> anyhow::Result<Costs> {
    let cache = if let Far::Paged(paged) = &machine.far { Some(paged.cache_bytes) } else { None };
    let all = prices.of(&advice.curve, summary.peak_bytes as f64, cache, machine.scaling.part).map_err(refuse)?;
    Ok(Costs { currency: prices.currency.clone(), sizes: all })
}

/// The table.
pub fn text(costs: &Costs) -> String {
    let currency = &costs.currency;
    let mut text = format!("\nprices in {currency}; * no other size is both faster and cheaper in memory\n");
    let _ = writeln!(text, "  {:>10}  {:>10}  {:>16}  {:>14}", "near", "run time", "memory, an hour", "a run");
    let cheapest = costs.sizes.iter().map(|one| one.run).fold(f64::INFINITY, f64::min);
    for one in &costs.sizes {
        let Priced { near, seconds, memory_hour, run, front, .. } = one;
        let _ = writeln!(
            text,
            "{} {:>10}  {seconds:>8.2} s  {memory_hour:>16.4}  {run:>14.6}{}",
            if *front { '*' } else { ' ' },
            Bytes(*near as u64).to_string(),
            if *run == cheapest { "  cheapest run" } else { "" }
        );
    }
    text
}
