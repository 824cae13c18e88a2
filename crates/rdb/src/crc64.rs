//! CRC-64 as Redis computes it (Jones's polynomial, reflected, no inversion), eight bytes a step.

/// The polynomial 0xad93d23594c935a9 with its bits reversed. In every file: see `docs/format/rdb.md`.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// `TABLES[n][b]` is the CRC of byte `b` followed by `n` zero bytes.
const TABLES: [[u64; 256]; 8] = tables();

#[expect(clippy::indexing_slicing, reason = "computed by the compiler")]
const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// The CRC of `bytes` behind those that `crc` covers; that of no bytes is 0.
#[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
pub fn extend(crc: u64, bytes: &[u8]) -> u64 {
    let at =
        |table: usize, word: u64, byte: u32| TABLES[table][usize::from((word >> (8 * byte)) as u8)];
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(crc, |crc, word| {
        let word = crc ^ u64::from_le_bytes(*word);
        at(7, word, 0)
            ^ at(6, word, 1)
            ^ at(5, word, 2)
            ^ at(4, word, 3)
            ^ at(3, word, 4)
            ^ at(2, word, 5)
            ^ at(1, word, 6)
            ^ at(0, word, 7)
    });
    rest.iter().fold(crc, |crc, byte| {
        (crc >> 8) ^ at(0, crc ^ u64::from(*byte), 0)
    })
}

/// The CRC of `bytes`.
pub fn crc64(bytes: &[u8]) -> u64 {
    extend(0, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_redis_is_met() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(b""), 0);
    }

    #[test]
    fn a_crc_of_pieces_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..100u8).collect();
        for cut in 0..bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(extend(crc64(head), tail), crc64(&bytes), "cut at {cut}");
        }
    }
}
