use super::*;

#[test]
fn the_time_of_children_is_read() {
    let sum = children_seconds("0m0.010s 0m0.020s\n1m30.500s 0m9.500s\n").unwrap();
    assert!((sum - 100.0).abs() < 1e-9, "{sum}");
    assert!(children_seconds("").is_err());
}

#[test]
fn the_smallest_agent_has_at_most_fifteen_lines() {
    let lines = PROGRAM
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count();
    assert!(lines <= 15, "{lines}");
}

#[test]
fn a_line_of_the_tree_names_a_crate() {
    let id = |line: &str| id_of(line);
    assert_eq!(
        id("async-trait v0.1.92 (proc-macro)").unwrap(),
        "async-trait@0.1.92"
    );
    assert_eq!(id("serde v1.0.229").unwrap(), "serde@1.0.229");
    assert_eq!(id("smallest-agent v0.0.0 (/somewhere)"), None);
    assert_eq!(id(""), None);
}
