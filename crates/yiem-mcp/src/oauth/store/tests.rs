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
