//! Presets are data that people choose by name, so each is explained.

use yiem_openai::{Compat, Preset};

/// `docs/openai.md` has a row for each preset: its name, what it sets, why.
#[test]
fn every_preset_differs_and_is_explained() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openai.md");
    let docs = std::fs::read_to_string(docs).expect("the page about servers");
    for (name, preset) in Preset::ALL {
        assert_eq!(name.parse::<Preset>().ok(), Some(preset));
        assert_eq!(preset.name(), name);
        assert_ne!(preset.compat(), Compat::default(), "{name} sets nothing");
        let row = format!("| `{name}` |");
        let row = docs
            .lines()
            .find_map(|line| line.strip_prefix(row.as_str()))
            .unwrap_or_else(|| panic!("docs/openai.md has no row for {name}"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert!(
            cells.len() >= 2 && cells[..2].iter().all(|cell| cell.len() > 10),
            "{name}: {row}"
        );
    }
}
