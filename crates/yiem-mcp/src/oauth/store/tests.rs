//! What is kept is what comes back, for its server alone and for its owner alone.

use super::*;

const SERVER: &str = "https://h.example:8443/mcp?x=1";

/// A directory that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("yiem-tokens-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn keeps(store: &dyn TokenStore) {
    assert_eq!(store.load(SERVER).await.expect("nothing"), None);
    store.clear(SERVER).await.expect("nothing to forget");
    for secret in ["first", "second \"quoted\"\n"] {
        store.save(SERVER, secret).await.expect("kept");
        assert_eq!(
            store.load(SERVER).await.expect("there").as_deref(),
            Some(secret)
        );
    }
    assert_eq!(
        store
            .load("https://h.example:8443/other")
            .await
            .expect("nothing"),
        None
    );
    store.clear(SERVER).await.expect("forgotten");
    assert_eq!(store.load(SERVER).await.expect("nothing"), None);
}

#[tokio::test]
async fn both_stores_keep_what_they_are_given() {
    let folder = Folder::new("keeps");
    keeps(&MemoryTokenStore::default()).await;
    keeps(&FileTokenStore::new(folder.0.join("made/at/first"))).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_token_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("private");
    let store = FileTokenStore::new(&folder.0);
    store.save(SERVER, "secret").await.expect("kept");
    store.save(SERVER, "secret").await.expect("kept again");
    let files: Vec<PathBuf> = std::fs::read_dir(&folder.0)
        .expect("a folder")
        .map(|file| file.expect("a file").path())
        .collect();
    assert_eq!(files.len(), 1, "no draft is left: {files:?}");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&files[0]), mode(&folder.0)), (0o600, 0o700));
    // One that others can read may have been written by others.
    std::fs::set_permissions(&files[0], std::fs::Permissions::from_mode(0o644)).expect("changed");
    let error = store.load(SERVER).await.expect_err("not used");
    assert!(error.to_string().contains("0600"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_broken_or_foreign_file_is_not_used() {
    let folder = Folder::new("broken");
    let store = FileTokenStore::new(&folder.0);
    store.save(SERVER, "secret").await.expect("kept");
    let path = store.path(SERVER);
    std::fs::write(&path, r#"{"server":"https://other/","secret":"theirs"}"#).expect("written");
    assert_eq!(store.load(SERVER).await.expect("read"), None);
    std::fs::write(&path, "{half").expect("written");
    assert!(store.load(SERVER).await.is_err());
}

#[tokio::test]
async fn neither_a_files_name_nor_an_error_shows_who_and_with_what() {
    let folder = Folder::new("names");
    let store = FileTokenStore::new(&folder.0);
    for server in [
        "https://ada:hunter2@h.example/mcp",
        "https://ada:hunter2@h.example:8443/mcp?key=hunter2#ada",
        "ada:hunter2@no-address",
    ] {
        store.save(server, "secret").await.expect("kept");
        let path = store.path(server);
        std::fs::write(&path, "{half").expect("written");
        let error = store.load(server).await.expect_err("broken").to_string();
        let shown = format!("{} {error}", path.display());
        assert!(
            !shown.contains("ada") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
    let path = |server| store.path(server);
    assert_eq!(
        path("https://ada:one@h.example/"),
        path("https://ada:two@h.example/"),
        "nothing of a password, not even a hash"
    );
    assert_ne!(
        path("https://ada@h.example/"),
        path("https://bob@h.example/")
    );
    assert_ne!(path("https://h.example/a"), path("https://h.example/b"));
    let name = path("https://ada@h.example/");
    let name = name
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(name.starts_with("h-example-"), "{name}");
}

#[tokio::test]
async fn two_that_keep_at_once_do_not_break_each_other() {
    let folder = Folder::new("at-once");
    let (one, other) = (
        FileTokenStore::new(&folder.0),
        FileTokenStore::new(&folder.0),
    );
    let long = "x".repeat(100_000);
    for _ in 0..20 {
        let (first, second) = tokio::join!(one.save(SERVER, &long), other.save(SERVER, &long));
        first.expect("kept");
        second.expect("kept");
        assert_eq!(one.load(SERVER).await.expect("read").as_ref(), Some(&long));
    }
    let path = one.path(SERVER);
    assert_ne!(draft(&path), draft(&path));
    let files = std::fs::read_dir(&folder.0).expect("a folder").count();
    assert_eq!(files, 1, "no draft is left");
}

fn files_of(folder: &Folder) -> usize {
    std::fs::read_dir(&folder.0).expect("a folder").count()
}

#[tokio::test]
async fn a_draft_of_a_process_that_was_killed_is_swept_and_one_that_is_written_is_not() {
    let folder = Folder::new("swept");
    let store = FileTokenStore::new(&folder.0);
    store.save(SERVER, "secret").await.expect("kept");
    let left = draft(&store.path("https://other.example/"));
    let others = folder.0.join("notes.new");
    std::fs::write(&others, "not ours").expect("written");
    for touch in ["load", "save", "clear"] {
        std::fs::write(&left, "half a sec").expect("written");
        let written = write_draft(&draft(&left), b"x").expect("a draft");
        assert_eq!(files_of(&folder), 4, "{touch}");
        match touch {
            "load" => drop(store.load(SERVER).await.expect("read")),
            "save" => store.save(SERVER, "secret").await.expect("kept"),
            _ => store.clear("https://other.example/").await.expect("gone"),
        }
        assert!(!left.exists(), "{touch}");
        assert_eq!(
            files_of(&folder),
            3,
            "{touch}: the one that is written stays"
        );
        // Its process ends without a word.
        drop(written);
        store.load(SERVER).await.expect("read");
        assert_eq!(files_of(&folder), 2, "{touch}");
    }
    assert!(others.exists(), "what is not ours stays");
}

#[test]
fn only_names_of_drafts_are_drafts() {
    let store = FileTokenStore::new("tokens");
    let name = |path: PathBuf| {
        path.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    assert!(is_draft(&name(draft(&store.path(SERVER)))));
    assert!(!is_draft(&name(store.path(SERVER))));
    for other in [
        "",
        "new",
        ".new",
        "x.new",
        "a-0123456789abcdef.1-2.new",
        "a-0123456789abcdef.1-2-3.new",
        "a.1-2-0123456789abcdef.new",
        "a-0123456789abcdef.x-2-0123456789abcdef.new",
        "a-0123456789abcdef.1-2-0123456789abcdef.old",
    ] {
        assert!(!is_draft(other), "{other}");
    }
}
