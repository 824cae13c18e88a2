//! Goal: flushes and compactions that pass the page cache by make the same tables, fail and recover
//! the same way, and say so where they cannot; the option travels in the OPTIONS file. Method: real
//! files where the page cache matters, a disk in memory elsewhere.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use drumlin::{Db, Env, Error, ErrorKind, EventListener, Options, Tuning};
    use drumlin_fs::{FileSystem, StrictMemFileSystem};
    use drumlin_testkit::temp_dir;

    const DIRECT_KEY: &str = "use_direct_io_for_flush_and_compaction";

    #[derive(Default)]
    struct Failures(Mutex<Vec<(ErrorKind, String)>>);

    impl EventListener for Failures {
        fn background_failed(&self, error: &Error) {
            let told = (error.kind(), error.to_string());
            self.0.lock().unwrap().push(told);
        }
    }

    fn options(files: Arc<dyn FileSystem>, direct: Option<bool>) -> Options {
        Options {
            background_threads: Some(0),
            tuning: Tuning {
                background_direct_io: direct,
                write_buffer_bytes: Some(1 << 20),
                l0_trigger: 100,
                l0_slowdown: 200,
                ..Tuning::default()
            },
            env: Env::system().with_files(files).with_seed(3),
            ..Options::default()
        }
    }

    /// Two tables and blob files, then all of it compacted.
    fn work(db: &Db) {
        for round in 0..2u32 {
            for n in 0..3000u32 {
                let len = if n.is_multiple_of(10) { 5000 } else { 100 };
                let value = vec![(n ^ round) as u8; len];
                db.put(n.to_be_bytes(), value).unwrap();
            }
            db.flush().unwrap();
        }
        db.compact_range(db.default_family(), None, None).unwrap();
    }

    fn check(db: &Db) {
        for n in 0..3000u32 {
            let value = db.get(n.to_be_bytes()).unwrap().unwrap();
            assert!(value.iter().all(|&byte| byte == (n ^ 1) as u8), "{n}");
        }
    }

    fn options_text(files: &dyn FileSystem, dir: &Path) -> String {
        let names = files.list(dir).unwrap();
        let newest = names
            .iter()
            .filter(|name| name.to_string_lossy().starts_with("OPTIONS-"))
            .max()
            .unwrap();
        let bytes = files.read_file(&dir.join(newest), 1 << 20).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_is_written_past_the_cache_is_read_back() {
        let dir = temp_dir();
        let files = Env::system().files;
        let db = Db::open(dir.path(), options(Arc::clone(&files), Some(true))).unwrap();
        work(&db);
        check(&db);
        let text = db.explain(db.default_family(), None);
        assert!(text.contains("past the page cache"), "{text}");
        db.close().unwrap();
        let db = Db::open(dir.path(), options(files, Some(false))).unwrap();
        check(&db);
        let text = db.explain(db.default_family(), None);
        assert!(!text.contains("past the page cache"), "{text}");
    }

    #[test]
    fn the_option_travels_in_the_options_file() {
        let memory = Arc::new(StrictMemFileSystem::new());
        let dir = Path::new("/db");
        let open = |direct| Db::open(dir, options(memory.clone(), direct)).unwrap();
        drop(open(None));
        assert!(!options_text(&*memory, dir).contains(DIRECT_KEY));
        drop(open(Some(true)));
        let line = format!("{DIRECT_KEY}=true");
        assert!(options_text(&*memory, dir).contains(&line));
        let db = open(None);
        let text = db.explain(db.default_family(), None);
        assert!(text.contains("past the page cache"), "{text}");
        drop(db);
        assert!(options_text(&*memory, dir).contains(&line));
        drop(open(Some(false)));
        assert!(!options_text(&*memory, dir).contains(&line));
    }

    #[test]
    fn a_file_system_without_it_is_used_through_the_cache_and_the_listener_is_told() {
        let memory = StrictMemFileSystem::new();
        memory.set_takes_direct(false);
        let failures = Arc::new(Failures::default());
        let options = Options {
            listener: Some(Arc::clone(&failures) as Arc<dyn EventListener>),
            ..options(Arc::new(memory), Some(true))
        };
        let db = Db::open("/db", options).unwrap();
        let told = failures.0.lock().unwrap().clone();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, ErrorKind::NotSupported);
        assert!(told[0].1.contains("no direct I/O"), "{told:?}");
        work(&db);
        check(&db);
    }
}
