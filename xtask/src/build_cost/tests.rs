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
