use super::*;

fn package(name: &str, rest: &str) -> Package {
    let text = format!("[package]\nname = {name:?}\n{rest}");
    Package {
        name: name.to_owned(),
        folder: format!("crates/{name}").into(),
        table: text.parse().unwrap(),
    }
}

const PLAN: &str = "
[low]
layer = 0
may = []
[mid]
layer = 1
may = [\"low\"]
[other]
layer = 1
may = [\"low\"]
[yiem-test]
layer = 2
may = []
";

fn breaches(packages: &[Package]) -> Vec<String> {
    let mut all = vec![
        package("low", ""),
        package("other", ""),
        package("yiem-test", ""),
    ];
    all.retain(|known| packages.iter().all(|package| package.name != known.name));
    for extra in packages {
        all.push(package(&extra.name, ""));
        let last = all.len() - 1;
        all[last].table = extra.table.clone();
    }
    edges(&PLAN.parse().unwrap(), &all)
}

#[test]
fn this_workspace_keeps_its_layers() {
    check(&manifest::root()).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn an_edge_of_the_plan_is_accepted() {
    assert_eq!(
        breaches(&[package("mid", "[dependencies]\nlow.workspace = true")]),
        [""; 0]
    );
}

#[test]
fn an_added_edge_is_refused() {
    for table in [
        "dependencies",
        "build-dependencies",
        "dev-dependencies",
        "target.'cfg(unix)'.dependencies",
    ] {
        let found = breaches(&[package(
            "mid",
            &format!("[{table}]\nother.workspace = true"),
        )]);
        assert_eq!(found.len(), 1, "{table}: {found:?}");
        assert!(found[0].starts_with("mid -> other"), "{found:?}");
    }
}

#[test]
fn an_added_edge_in_this_workspace_is_refused() {
    let root = manifest::root();
    let plan: Table = process::read(&root.join("layers.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let mut packages = manifest::packages(&root).unwrap();
    packages.push(fuzzing::package(&root).unwrap());
    assert_eq!(edges(&plan, &packages), [""; 0]);
    let core = packages
        .iter_mut()
        .find(|package| package.name == "yiem-core")
        .unwrap();
    core.table = "[dependencies]\nyiem-agent.workspace = true"
        .parse()
        .unwrap();
    assert_eq!(
        edges(&plan, &packages),
        ["yiem-core -> yiem-agent: the plan has no such edge"]
    );
}

#[test]
fn the_test_kit_is_a_dev_dependency_of_anyone_and_a_normal_one_of_nobody() {
    assert_eq!(
        breaches(&[package(
            "mid",
            "[dev-dependencies]\nyiem-test.workspace = true"
        )]),
        [""; 0]
    );
    assert_eq!(
        breaches(&[package("mid", "[dependencies]\nyiem-test.workspace = true")]).len(),
        1
    );
}

#[test]
fn a_plan_that_points_up_or_sideways_is_refused() {
    let plan: Table = PLAN
        .replace(
            "[other]\nlayer = 1\nmay = [\"low\"]",
            "[other]\nlayer = 1\nmay = [\"mid\"]",
        )
        .parse()
        .unwrap();
    let packages = ["low", "mid", "other", "yiem-test"].map(|name| package(name, ""));
    assert_eq!(
        edges(&plan, &packages),
        ["other -> mid does not point to a lower layer"]
    );
}

#[test]
fn a_crate_without_a_row_and_a_row_without_a_crate_are_refused() {
    let found = breaches(&[package("new", "")]);
    assert!(
        found.iter().any(|f| f.starts_with("new has no row")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|f| f.starts_with("[mid] is no crate")),
        "{found:?}"
    );
}

#[test]
fn a_forbidden_crate_and_a_forbidden_feature_are_found_in_a_tree() {
    let tree = Tree::read(
        "yiem-core",
        "yiem-core v0.1.0 (/x)\t\ntokio v1.50.0\tdefault,rt,sync\nbytes v1.11.0\tdefault,std (*)\n",
    );
    let banned = ["bytes".to_owned(), "reqwest".to_owned()];
    assert_eq!(tree.forbidden("without features", &banned).len(), 1);
    assert_eq!(
        tree.features_beyond("tokio", &["sync".to_owned()]),
        ["yiem-core turns on tokio/rt, the plan has only [\"sync\"]"]
    );
}

#[test]
fn a_feature_that_turns_on_a_door_is_a_door() {
    let package = package(
        "mid",
        "[features]\nall = [\"more\"]\nmore = [\"http\"]\nhttp = []\nplain = []",
    );
    let doors = ["http".to_owned()];
    assert!(opens(&package, "all", &doors));
    assert!(!opens(&package, "plain", &doors));
}
