//! OPTIONS files, families that were added among them: an accepted file, written again, is accepted and says the same.

use drumlin::internals::options_file::OptionsFile;

use super::expect::or_blamed;

pub(crate) fn run(data: &[u8]) {
    let Some(options) = or_blamed(OptionsFile::read(data)) else {
        return;
    };
    let written = options.to_text();
    let again = OptionsFile::parse(&written).expect("what was written is accepted");
    assert_eq!(again.to_text(), written, "writing is a fixed point");
}
