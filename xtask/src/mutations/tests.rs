use super::*;

const LIST: &str = "
[[mutation]]
name = \"results in order of completion\"
breaks = \"R-3\"
file = \"crates/yiem-agent/src/batch.rs\"
find = \"sort\"
replace = \"reverse\"
";

#[test]
fn a_mutation_names_its_crate_and_is_applied_where_its_words_stand_once() {
    let mutation = parse(LIST).unwrap().remove(0);
    assert_eq!(mutation.package, "yiem-agent");
    assert_eq!(mutation.applied("a.sort()").unwrap(), "a.reverse()");
}

#[test]
fn a_mutation_whose_words_are_gone_or_there_twice_is_refused() {
    let mutation = parse(LIST).unwrap().remove(0);
    assert!(mutation.applied("nothing").is_err());
    assert!(mutation.applied("sort sort").is_err());
}

#[test]
fn a_mutation_without_the_promise_that_it_breaks_is_refused() {
    assert!(parse(&LIST.replace("breaks = \"R-3\"\n", "")).is_err());
}

#[test]
fn a_copy_is_only_touched_where_it_differs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a/b.rs");
    write_if_changed(&file, b"x").unwrap();
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    write_if_changed(&file, b"x").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    write_if_changed(&file, b"y").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"y");
}
