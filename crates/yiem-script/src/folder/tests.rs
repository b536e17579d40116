use std::io::Write as _;

use super::*;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// As [`put`], after the other writers.
fn put_at_last(dir: &Path, file: &str, overwrite: bool, text: &[u8]) -> Result<PathBuf, PutError> {
    loop {
        let put = put(dir, file, overwrite, |f| {
            text.chunks(999).try_for_each(|part| f.write_all(part))
        });
        match put {
            Err(PutError::Busy) => std::thread::yield_now(),
            put => return put,
        }
    }
}

#[test]
fn a_file_is_written_whole() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("made/on/the/way");
    let path = put(&inner, "a.js", false, |f| f.write_all(b"text")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    assert_eq!(names(&inner), ["a.js"]);
}

#[test]
fn nothing_is_overwritten_unless_asked() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "a.js", false, |f| f.write_all(b"first")).unwrap();
    let again = put(dir.path(), "a.js", false, |f| f.write_all(b"second"));
    assert!(matches!(again, Err(PutError::Exists(there)) if there == "a.js"));
    // Another spelling is another file here and the same one elsewhere: never.
    for overwrite in [false, true] {
        let other = put(dir.path(), "A.js", overwrite, |f| f.write_all(b"second"));
        assert!(matches!(other, Err(PutError::Exists(there)) if there == "a.js"));
    }
    assert_eq!(
        fs::read_to_string(dir.path().join("a.js")).unwrap(),
        "first"
    );
    put(dir.path(), "a.js", true, |f| f.write_all(b"third")).unwrap();
    assert_eq!(
        fs::read_to_string(dir.path().join("a.js")).unwrap(),
        "third"
    );
    assert_eq!(names(dir.path()), ["a.js"]);
}

#[test]
fn a_disk_that_is_full_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "a.js", false, |f| f.write_all(b"before")).unwrap();
    for (file, overwrite) in [("a.js", true), ("b.js", false)] {
        let full = put(dir.path(), file, overwrite, |f| {
            f.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(matches!(full, Err(PutError::Io(e)) if e.kind() == io::ErrorKind::StorageFull));
    }
    assert_eq!(names(dir.path()), ["a.js"]);
    assert_eq!(
        fs::read_to_string(dir.path().join("a.js")).unwrap(),
        "before"
    );
}

#[test]
fn of_two_writers_at_once_one_wins_and_its_file_is_whole() {
    for overwrite in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let start = std::sync::Barrier::new(8);
        let written: Vec<bool> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8_u8)
                .map(|i| {
                    let (dir, start) = (dir.path(), &start);
                    scope.spawn(move || {
                        start.wait();
                        put_at_last(dir, "a.js", overwrite, &[b'a' + i; 100_000]).is_ok()
                    })
                })
                .collect();
            writers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        let winners = written.iter().filter(|ok| **ok).count();
        assert_eq!(winners, if overwrite { 8 } else { 1 });
        let text = fs::read(dir.path().join("a.js")).unwrap();
        assert!(text.len() == 100_000 && text.iter().all(|b| *b == text[0]));
        assert_eq!(names(dir.path()), ["a.js"]);
    }
}

#[cfg(unix)]
#[test]
fn links_are_neither_written_through_nor_read() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.js");
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, dir.path().join("a.js")).unwrap();
    symlink(outside.path().join("nothing.js"), dir.path().join("b.js")).unwrap();
    symlink(outside.path(), dir.path().join("c.js")).unwrap();
    for file in ["a.js", "b.js", "c.js"] {
        for overwrite in [false, true] {
            let put = put(dir.path(), file, overwrite, |f| f.write_all(b"mine"));
            assert!(matches!(put, Err(PutError::Link(_))), "{file}");
        }
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(names(outside.path()), ["secret.js"]);
    let found = read(dir.path(), 1000).unwrap();
    assert_eq!(found.len(), 3);
    for file in found {
        assert_eq!(
            file.text.unwrap_err(),
            "it is a symbolic link, which is not followed"
        );
    }
    // The folder itself may not be a link when something is written.
    let linked = outside.path().join("linked");
    symlink(dir.path(), &linked).unwrap();
    assert!(matches!(
        put(&linked, "z.js", false, |_| Ok(())),
        Err(PutError::Link(_))
    ));
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_held_open_stays_that_folder_when_its_name_is_swapped() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    let (dir, moved) = (root.path().join("tools"), root.path().join("moved"));
    let outside = root.path().join("outside");
    fs::create_dir(&dir).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.js"), "secret").unwrap();
    let held = Handle::open(&dir, false).unwrap();
    let draft = Draft::new(&held).unwrap();
    (&draft.file).write_all(b"mine").unwrap();
    fs::rename(&dir, &moved).unwrap();
    symlink(&outside, &dir).unwrap();
    draft.keep_as("b.js", false).unwrap();
    let second = Draft::new(&held).unwrap();
    second.keep_as("b.js", true).unwrap();
    drop(Draft::new(&held).unwrap());
    assert_eq!(names(&moved), ["b.js"]);
    assert_eq!(names(&outside), ["a.js"]);
    assert!(held.open_file("a.js".as_ref()).is_err());
    assert!(Handle::open(&dir, false).is_err(), "it is a link now");
}

#[cfg(unix)]
#[test]
fn what_is_swapped_for_a_link_or_a_pipe_after_it_was_looked_at_is_not_read() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    symlink(outside.path(), dir.path().join("link.js")).unwrap();
    let pipe = dir.path().join("pipe.js");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    fs::create_dir(dir.path().join("folder.js")).unwrap();
    let folder = Handle::open(dir.path(), true).unwrap();
    // As if each had been a file when the folder was listed.
    for name in ["link.js", "pipe.js", "folder.js"] {
        let read = read_text(&folder, name.as_ref(), 1000);
        assert!(read.is_err(), "{name}: {read:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_swapped_all_the_time_never_leads_outside() {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::AtomicBool;
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let (file, link) = (dir.path().join("a.js"), dir.path().join("l"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let next = dir.path().join("n");
            while !done.load(Ordering::Relaxed) {
                fs::write(&next, "plain").unwrap();
                fs::rename(&next, &file).unwrap();
                symlink(&secret, &link).unwrap();
                fs::rename(&link, &file).unwrap();
            }
        });
        for round in 0..500 {
            for found in read(dir.path(), 1000).unwrap() {
                assert_ne!(found.text.as_deref(), Ok("secret"));
            }
            let text = format!("mine {round}");
            let _ = put(dir.path(), "a.js", round % 2 == 0, |f| {
                f.write_all(text.as_bytes())
            });
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(names(outside.path()), ["secret"]);
    let left = names(dir.path());
    assert!(
        left.iter().all(|name| !name.starts_with(".writing-")),
        "{left:?}"
    );
}

#[test]
fn drafts_that_others_left_behind_stand_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let process = std::process::id();
    for number in 0..400 {
        let name = format!(".writing-{process}-{number}.tmp");
        fs::write(dir.path().join(name), "half").unwrap();
    }
    put(dir.path(), "a.js", false, |f| f.write_all(b"whole")).unwrap();
    assert_eq!(names(dir.path()), ["a.js"]);
}

#[cfg(unix)]
#[test]
fn a_draft_of_a_writer_that_was_killed_is_swept_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str| fs::write(dir.path().join(name), "half").unwrap();
    write(".writing-1-0.tmp");
    let written = File::create(dir.path().join(".writing-1-1.tmp")).unwrap();
    written.lock().unwrap();
    let others = [
        ".writing-.tmp",
        ".writing-1-.tmp",
        ".writing-1-2.tmp.js",
        ".writing-a-1.tmp",
        "writing-1-1.tmp",
    ];
    others.iter().for_each(|name| write(name));
    let folder = ".writing-1-3.tmp";
    fs::create_dir(dir.path().join(folder)).unwrap();
    let link = ".writing-1-4.tmp";
    std::os::unix::fs::symlink(dir.path().join("writing-1-1.tmp"), dir.path().join(link)).unwrap();
    // Reading changes nothing.
    let before = names(dir.path());
    read(dir.path(), 1000).unwrap();
    assert_eq!(names(dir.path()), before);

    put(dir.path(), "a.js", false, |f| f.write_all(b"whole")).unwrap();
    let mut left = [&others[..], &["a.js", ".writing-1-1.tmp", folder, link]].concat();
    left.sort_unstable();
    assert_eq!(names(dir.path()), left);
    drop(written);
    put(dir.path(), "a.js", true, |f| f.write_all(b"whole")).unwrap();
    assert!(!names(dir.path()).contains(&".writing-1-1.tmp".to_owned()));
}

#[test]
fn of_two_spellings_at_once_one_is_written() {
    for _ in 0..50 {
        let dir = tempfile::tempdir().unwrap();
        let spellings = ["abc.js", "ABC.js", "Abc.js", "aBC.js"];
        let start = std::sync::Barrier::new(spellings.len());
        let written: Vec<bool> = std::thread::scope(|scope| {
            let writers = spellings.map(|file| {
                let (dir, start) = (dir.path(), &start);
                scope.spawn(move || {
                    start.wait();
                    put_at_last(dir, file, false, file.as_bytes()).is_ok()
                })
            });
            writers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        let won: Vec<&str> = spellings
            .into_iter()
            .zip(written)
            .filter_map(|(file, won)| won.then_some(file))
            .collect();
        assert_eq!(names(dir.path()), won);
        assert_eq!(won.len(), 1);
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_writer_waits_for_the_one_before_and_not_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let env = yiem_test::PausedEnv::shared();
    let path = dir.path().to_owned();
    let write = move || put(&path, "a.js", false, |f| f.write_all(b"mine"));
    let other = Handle::open(dir.path(), false).unwrap();
    assert!(other.lock().unwrap());
    let began = env.elapsed();
    let put = put_in_turn(&*env, write.clone()).await;
    assert!(matches!(put, Err(PutError::Busy)), "{put:?}");
    assert!(env.elapsed() - began < Duration::from_secs(10));
    assert_eq!(names(dir.path()), Vec::<String>::new());
    // The other is done while this one waits.
    let released = async {
        env.sleep(Duration::from_millis(30)).await;
        drop(other);
    };
    let (put, ()) = tokio::join!(put_in_turn(&*env, write), released);
    put.unwrap();
    assert_eq!(names(dir.path()), ["a.js"]);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let socket = std::os::unix::net::UnixListener::bind(dir.path().join("s.js")).unwrap();
    let found = read(dir.path(), 1000).unwrap();
    assert_eq!(
        found[0].text.as_ref().unwrap_err(),
        "it is not a regular file"
    );
    drop(socket);
    // Opening a pipe waits for who writes into it.
    let pipe = dir.path().join("p.js");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let found = read(dir.path(), 1000).unwrap();
    assert_eq!(found[0].file, "p.js");
    for file in found {
        assert_eq!(file.text.unwrap_err(), "it is not a regular file");
    }
    for overwrite in [false, true] {
        let put = put(dir.path(), "p.js", overwrite, |f| f.write_all(b"mine"));
        assert!(matches!(put, Err(PutError::NoFile(file)) if file == "p.js"));
    }
}

#[test]
fn a_folder_in_place_of_a_file_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("a.js")).unwrap();
    fs::write(dir.path().join("a.js/inner"), "kept").unwrap();
    for overwrite in [false, true] {
        let put = put(dir.path(), "a.js", overwrite, |f| f.write_all(b"mine"));
        assert!(matches!(put, Err(PutError::NoFile(file)) if file == "a.js"));
    }
    assert_eq!(names(dir.path()), ["a.js"]);
    // A file in place of the folder.
    let file = dir.path().join("file");
    fs::write(&file, "kept").unwrap();
    assert!(matches!(
        put(&file, "a.js", false, |_| Ok(())),
        Err(PutError::Io(_))
    ));
    assert!(read(&file, 1000).is_err());
    assert_eq!(fs::read_to_string(file).unwrap(), "kept");
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_costs_nobody_else() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join(std::ffi::OsStr::from_bytes(b"b\xff.js")),
        "odd",
    )
    .unwrap();
    fs::write(dir.path().join("ünï.js"), "other").unwrap();
    fs::write(dir.path().join("a.js"), "plain").unwrap();
    let found = read(dir.path(), 1000).unwrap();
    let texts: Vec<String> = found.into_iter().map(|f| f.text.unwrap()).collect();
    assert_eq!(texts, ["plain", "odd", "other"]);
}

#[test]
fn only_tool_files_are_read_in_the_order_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    for file in [
        "b.js",
        "a.mjs",
        "C.js",
        ".hidden.js",
        ".writing-x.tmp",
        "notes.md",
        "d.js.bak",
        "js",
    ] {
        fs::write(dir.path().join(file), file).unwrap();
    }
    fs::create_dir(dir.path().join("folder.js")).unwrap();
    fs::write(dir.path().join("e.js"), b"ok\n\xff").unwrap();
    fs::write(dir.path().join("f.js"), "x".repeat(1001)).unwrap();
    let found = read(dir.path(), 1000).unwrap();
    let files: Vec<&str> = found.iter().map(|f| f.file.as_str()).collect();
    assert_eq!(files, ["C.js", "a.mjs", "b.js", "e.js", "f.js"]);
    assert_eq!(
        found[3].text.as_ref().unwrap_err(),
        "it is not UTF-8 in line 2"
    );
    assert!(
        found[4]
            .text
            .as_ref()
            .unwrap_err()
            .contains("more than the 1000 bytes")
    );
}
