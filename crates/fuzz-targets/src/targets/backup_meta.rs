//! Meta files of backups: what is accepted names no file outside the directory, and what is written of it is accepted
//! and says the same.

use drumlin::internals::backup_meta::Meta;

use super::expect::or_blamed;

pub(crate) fn run(data: &[u8]) {
    let Some(meta) = or_blamed(Meta::decode(data)) else {
        return;
    };
    let paths = meta
        .files
        .iter()
        .map(|file| &file.path)
        .chain(&meta.excluded);
    for path in paths {
        let is_inside = |part: &str| !part.is_empty() && part != "." && part != "..";
        assert!(path.split('/').all(is_inside), "{path:?}");
    }
    // Schema 1, which is written, has a checksum of every file, and no sizes.
    let mut plain = Meta {
        excluded: Vec::new(),
        ..meta
    };
    for file in &mut plain.files {
        file.crc32c = Some(file.crc32c.unwrap_or_default());
        file.size = None;
    }
    let written = plain.encode();
    let again = Meta::decode(written.as_bytes()).expect("what was written is accepted");
    assert_eq!(again, plain);
}
