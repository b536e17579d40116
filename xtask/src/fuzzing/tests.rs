use super::*;

#[test]
fn targets_and_time_are_read_in_any_order() {
    let read = plan(&["--seconds", "5", "sse", "arguments"]).unwrap();
    assert_eq!((read.seconds, read.targets), (5, vec!["sse", "arguments"]));
    assert_eq!(plan(&[]).unwrap().seconds, SECONDS);
    assert!(plan(&["--seeds"]).unwrap().seeds_only);
    for wrong in [&["--seconds"][..], &["--seconds", "soon"], &["--fast"]] {
        assert!(plan(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn every_target_of_the_manifest_has_its_file() {
    let root = manifest::root();
    let package = package(&root).unwrap();
    let bins = package.table.get("bin").and_then(|bins| bins.as_array());
    let mut named: Vec<&str> = bins
        .into_iter()
        .flatten()
        .filter_map(|bin| bin.get("name")?.as_str())
        .collect();
    named.sort_unstable();
    assert_eq!(named, targets(&folder(&root)).unwrap());
    assert!(!named.is_empty());
}
