//! OPTIONS files: an accepted text, written again, is accepted and says the same.

use drumlin::internals::options_file::OptionsFile;

use super::expect::or_blamed;

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some(options) = or_blamed(OptionsFile::parse(&text)) else {
        return;
    };
    let written = options.to_text();
    let again = OptionsFile::parse(&written).expect("what was written is accepted");
    assert_eq!(again.to_text(), written, "writing is a fixed point");
}
