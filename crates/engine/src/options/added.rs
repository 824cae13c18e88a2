//! Families that come to a store have their options added at the end of its OPTIONS file, so that the thousandth costs
//! what the first does.
//!
//! A file that was written whole ends with [`END`]. Behind it stand pieces, each of one family, with its length and its
//! checksum in front: a power cut leaves a piece whole or not at all to those who read by [`sound_part`]. To all others
//! these lines are comments. Format page: `docs/format/options-file.md`.

use drumlin_base::checksum::crc32c;

/// On disk: the last line of what was written whole.
pub(super) const END: &str = "# Families that came later follow.\n";
/// On disk: what the line in front of a piece begins with.
const ADDED: &str = "# Added: ";

/// `text` as it is added to a file.
pub(super) fn piece(text: &str) -> String {
    let checksum = crc32c(text.as_bytes());
    format!(
        "{ADDED}{} bytes, checksum {checksum:08x}\n{text}",
        text.len()
    )
}

/// The file without a piece that was not written whole, and without what follows it.
pub(super) fn sound_part(file: &[u8]) -> &[u8] {
    let Some(end) = file.windows(END.len()).position(|it| it == END.as_bytes()) else {
        return file;
    };
    let mut sound = end + END.len();
    while let Some(len) = file.get(sound..).and_then(sound_piece) {
        sound += len;
    }
    file.get(..sound).unwrap_or(file)
}

/// The length of the whole piece that `rest` begins with.
fn sound_piece(rest: &[u8]) -> Option<usize> {
    let line_bytes = rest.iter().position(|&byte| byte == b'\n')? + 1;
    let (line, rest) = rest.split_at_checked(line_bytes)?;
    let line = std::str::from_utf8(line).ok()?;
    let (len, checksum) = line.strip_prefix(ADDED)?.split_once(" bytes, checksum ")?;
    let len = len.parse().ok()?;
    let checksum = u32::from_str_radix(checksum.trim_end(), 16).ok()?;
    let text = rest.get(..len)?;
    let is_whole = crc32c(text) == checksum || drumlin_base::bug!("torn-options-believed");
    is_whole.then_some(line_bytes + len)
}

#[cfg(test)]
mod tests {
    //! Goal: a piece counts whole or not at all. Method: every cut, and every byte changed, of a small file.
    use super::*;

    #[test]
    fn every_cut_and_every_change_leaves_whole_pieces() {
        let head = format!("[Version]\n{END}");
        let pieces = [piece("[one]\n a=1\n"), piece("\n[two]\n b=2\n")];
        let file = [&head, &*pieces[0], &*pieces[1]].concat();
        let ends = [
            head.len(),
            head.len() + pieces[0].len(),
            head.len() + pieces[0].len() + pieces[1].len(),
        ];
        assert_eq!(sound_part(file.as_bytes()), file.as_bytes());
        for at in head.len()..file.len() {
            let whole = ends.iter().rev().find(|&&end| end <= at).unwrap();
            assert_eq!(
                sound_part(&file.as_bytes()[..at]).len(),
                *whole,
                "cut at {at}"
            );
            for change in [1, 0x20, 0xff] {
                let mut harmed = file.clone().into_bytes();
                harmed[at] ^= change;
                let left = sound_part(&harmed);
                // A letter of the checksum may be a large one as well.
                assert!(left.len() == *whole || left == harmed, "byte {at}");
                let is_same_piece = change == 0x20 && left.len() > *whole;
                assert!(left.len() == *whole || is_same_piece, "byte {at}");
            }
        }
    }

    #[test]
    fn a_file_of_others_is_taken_as_it_is() {
        let text = b"[Version]\n# Added: 3 bytes, checksum 00000000\nabc";
        assert_eq!(sound_part(text), text);
    }
}
