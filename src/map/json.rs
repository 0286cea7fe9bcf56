//! The report of `nearfar map` for programs: everything that was seen, and the warnings with their words and advice.

use nearfar_core::affinity::{Survey, Warning};
use serde::Serialize;

/// Changes when a reader of the old version would misread the new one; added fields do not count.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    nearfar: &'static str,
    host: &'a str,
    #[serde(flatten)]
    survey: &'a Survey,
    warnings: Vec<Said<'a>>,
}

#[derive(Serialize)]
struct Said<'a> {
    #[serde(flatten)]
    warning: &'a Warning,
    text: String,
    advice: String,
}

/// The document.
///
/// # Errors
/// Those of the serializer, which there are none of for these types.
pub fn document(survey: &Survey, warnings: &[Warning], host: &str) -> anyhow::Result<String> {
    let said = |warning| Said { warning, text: warning.to_string(), advice: warning.advice() };
    let document = Document {
        format: "nearfar-map",
        version: VERSION,
        nearfar: env!("CARGO_PKG_VERSION"),
        host,
        survey,
        warnings: warnings.iter().map(said).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::affinity::judge;

    #[test]
    fn what_programs_read() {
        let mut survey = crate::map::display::tests::sample();
        let mut crowding = survey.processes[0].crowding;
        (crowding.over, crowding.cpus) = (15, 1);
        survey.processes[0].crowding = crowding;
        let text = document(&survey, &judge(&survey), "n1").expect("JSON");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&value["format"], &value["version"], &value["host"]), (&"nearfar-map".into(), &1.into(), &"n1".into()));
        let thread = &value["processes"][0]["threads"][1];
        assert_eq!((&thread["openmp"], &thread["allowed"], &thread["seen"][0][0]), (&1.into(), &"6".into(), &6.into()));
        assert_eq!(value["processes"][0]["memory"]["objects"][0]["by_node"]["1"], 2u64 << 30);
        assert_eq!((&value["warnings"][0]["kind"], &value["warnings"][0]["threads"]), (&"oversubscribed".into(), &2.into()));
        assert!(value["warnings"][0]["advice"].as_str().is_some_and(|advice| advice.contains("OMP_NUM_THREADS=1")), "{text}");
    }
}
