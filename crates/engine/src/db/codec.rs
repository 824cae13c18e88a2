//! Keys and values of types as bytes: keys in bytes that are ordered as the keys are.

use drumlin_base::{Error, ErrorKind, Result};

/// A key as bytes whose order is that of the keys.
///
/// For any two keys `a < b` exactly if the bytes of `a` come before those of `b`. Integers are big-endian, signed ones with
/// their sign turned; texts and bytes stand as they are, and with something behind them a zero is written as 0, 255 and
/// their end as 0, 0; parts of a tuple follow each other. What is stored does not change with versions of this library.
pub trait KeyCodec: Sized {
    /// Appends the key.
    fn encode(&self, out: &mut Vec<u8>);

    /// Appends the key where something follows it.
    fn encode_before(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }

    /// Takes the key from the front of `bytes`, where something followed it.
    ///
    /// # Errors
    /// `Corruption` where there is none.
    fn decode_before(bytes: &mut &[u8]) -> Result<Self>;

    /// The key that all of `bytes` are.
    ///
    /// # Errors
    /// `Corruption` where they are none.
    fn decode(mut bytes: &[u8]) -> Result<Self> {
        let key = Self::decode_before(&mut bytes)?;
        if bytes.is_empty() {
            Ok(key)
        } else {
            Err(damaged("a key has more bytes than its type"))
        }
    }
}

/// A value as bytes. What is stored does not change with versions of this library.
pub trait ValueCodec: Sized {
    /// Appends the value.
    fn encode(&self, out: &mut Vec<u8>);

    /// The value that all of `bytes` are.
    ///
    /// # Errors
    /// `Corruption` where they are none.
    fn decode(bytes: &[u8]) -> Result<Self>;
}

fn damaged(message: &str) -> Error {
    Error::new(ErrorKind::Corruption, message)
}

/// The first `N` bytes, which are taken away.
fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let (first, rest) = bytes
        .split_first_chunk()
        .ok_or_else(|| damaged("a key or value has fewer bytes than its type"))?;
    *bytes = rest;
    Ok(*first)
}

fn whole<const N: usize>(mut bytes: &[u8]) -> Result<[u8; N]> {
    let taken = take(&mut bytes)?;
    if bytes.is_empty() {
        Ok(taken)
    } else {
        Err(damaged("a value has more bytes than its type"))
    }
}

/// An integer: `$turned` is the bit that is turned in a key, which puts negative numbers first.
macro_rules! integer {
    ($type:ty, $unsigned:ty, $turned:expr) => {
        impl KeyCodec for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                let bits = <$unsigned>::from_be_bytes(self.to_be_bytes()) ^ $turned;
                out.extend_from_slice(&bits.to_be_bytes());
            }

            fn decode_before(bytes: &mut &[u8]) -> Result<Self> {
                let bits = <$unsigned>::from_be_bytes(take(bytes)?) ^ $turned;
                Ok(Self::from_be_bytes(bits.to_be_bytes()))
            }
        }

        impl ValueCodec for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn decode(bytes: &[u8]) -> Result<Self> {
                Ok(Self::from_be_bytes(whole(bytes)?))
            }
        }
    };
}

integer!(u8, u8, 0);
integer!(u16, u16, 0);
integer!(u32, u32, 0);
integer!(u64, u64, 0);
integer!(u128, u128, 0);
integer!(i8, u8, 1 << 7);
integer!(i16, u16, 1 << 15);
integer!(i32, u32, 1 << 31);
integer!(i64, u64, 1 << 63);
integer!(i128, u128, 1 << 127);

impl<const N: usize> KeyCodec for [u8; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode_before(bytes: &mut &[u8]) -> Result<Self> {
        take(bytes)
    }
}

impl<const N: usize> ValueCodec for [u8; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        whole(bytes)
    }
}

impl KeyCodec for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn encode_before(&self, out: &mut Vec<u8>) {
        for byte in self {
            out.push(*byte);
            if *byte == 0 {
                out.push(u8::MAX);
            }
        }
        out.extend_from_slice(&[0, 0]);
    }

    fn decode_before(bytes: &mut &[u8]) -> Result<Self> {
        let mut key = Self::new();
        loop {
            match *bytes {
                [0, 0, rest @ ..] => {
                    *bytes = rest;
                    return Ok(key);
                }
                [0, u8::MAX, rest @ ..] => {
                    key.push(0);
                    *bytes = rest;
                }
                [byte, rest @ ..] if *byte != 0 => {
                    key.push(*byte);
                    *bytes = rest;
                }
                _ => return Err(damaged("a part of a key has no end")),
            }
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        Ok(bytes.to_vec())
    }
}

impl ValueCodec for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        Ok(bytes.to_vec())
    }
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| damaged("a text is not UTF-8"))
}

impl KeyCodec for String {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn encode_before(&self, out: &mut Vec<u8>) {
        self.as_bytes().to_vec().encode_before(out);
    }

    fn decode_before(bytes: &mut &[u8]) -> Result<Self> {
        text(Vec::decode_before(bytes)?)
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        text(bytes.to_vec())
    }
}

impl ValueCodec for String {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        text(bytes.to_vec())
    }
}

/// No value: the family is a set of keys.
impl ValueCodec for () {
    fn encode(&self, _out: &mut Vec<u8>) {}

    fn decode(bytes: &[u8]) -> Result<Self> {
        whole::<0>(bytes).map(|_| ())
    }
}

impl<A: KeyCodec, B: KeyCodec> KeyCodec for (A, B) {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode_before(out);
        self.1.encode(out);
    }

    fn encode_before(&self, out: &mut Vec<u8>) {
        self.0.encode_before(out);
        self.1.encode_before(out);
    }

    fn decode_before(bytes: &mut &[u8]) -> Result<Self> {
        Ok((A::decode_before(bytes)?, B::decode_before(bytes)?))
    }

    fn decode(mut bytes: &[u8]) -> Result<Self> {
        let first = A::decode_before(&mut bytes)?;
        Ok((first, B::decode(bytes)?))
    }
}

impl<A: KeyCodec, B: KeyCodec, C: KeyCodec> KeyCodec for (A, B, C) {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode_before(out);
        self.1.encode_before(out);
        self.2.encode(out);
    }

    fn encode_before(&self, out: &mut Vec<u8>) {
        self.0.encode_before(out);
        self.1.encode_before(out);
        self.2.encode_before(out);
    }

    fn decode_before(bytes: &mut &[u8]) -> Result<Self> {
        let first = A::decode_before(bytes)?;
        Ok((first, B::decode_before(bytes)?, C::decode_before(bytes)?))
    }

    fn decode(mut bytes: &[u8]) -> Result<Self> {
        let first = A::decode_before(&mut bytes)?;
        let second = B::decode_before(&mut bytes)?;
        Ok((first, second, C::decode(bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    fn bytes<K: KeyCodec>(key: &K) -> Vec<u8> {
        let mut out = Vec::new();
        key.encode(&mut out);
        out
    }

    /// Each key reads back, and any two compare as their bytes do.
    fn check<K: KeyCodec + Ord + std::fmt::Debug + Clone>(keys: &[K]) {
        for a in keys {
            assert_eq!(&K::decode(&bytes(a)).expect("reads back"), a);
            for b in keys {
                let (left, right) = (bytes(a), bytes(b));
                assert_eq!(a.cmp(b), left.cmp(&right), "{a:?} and {b:?}");
            }
        }
    }

    fn texts(rng: &mut Rng) -> Vec<String> {
        let alphabet = ['\0', '\u{1}', 'a', 'b', '\u{ff}', '\u{10ffff}'];
        let mut text = || {
            let len = rng.next_u64() % 4;
            let letter = |_| alphabet[(rng.next_u64() % 6) as usize];
            (0..len).map(letter).collect::<String>()
        };
        (0..40).map(|_| text()).collect()
    }

    /// Goal: keys are ordered as their bytes. Method: numbers at their ends, texts with zeros, tuples of them, all pairs.
    #[test]
    fn keys_read_back_and_keep_their_order() {
        check(&[0u8, 1, 127, 128, 255]);
        check(&[0u64, 1, 255, 256, u64::MAX]);
        check(&[i8::MIN, -1, 0, 1, i8::MAX]);
        check(&[i64::MIN, -256, -1, 0, 1, i64::MAX]);
        check(&[i128::MIN, -1, 0, i128::MAX]);
        check(&[[0u8, 0], [0, 255], [1, 0]]);
        let mut rng = Rng::new(3);
        let texts = texts(&mut rng);
        check(&texts);
        let pairs: Vec<(String, i16)> = texts
            .iter()
            .zip(-20..)
            .map(|(a, b)| (a.clone(), b))
            .collect();
        check(&pairs);
        let both = texts.iter().zip(texts.iter().rev());
        let triples: Vec<(String, String, u8)> =
            both.map(|(a, b)| (a.clone(), b.clone(), 7)).collect();
        check(&triples);
        let bytes: Vec<(Vec<u8>, Vec<u8>)> = triples
            .iter()
            .map(|(a, b, _)| (a.as_bytes().to_vec(), b.as_bytes().to_vec()))
            .collect();
        check(&bytes);
    }

    #[test]
    fn bytes_that_are_no_key_are_damage() {
        let damage = ErrorKind::Corruption;
        assert_eq!(
            <u32 as KeyCodec>::decode(&[1, 2, 3])
                .expect_err("short")
                .kind(),
            damage
        );
        assert_eq!(
            <u32 as KeyCodec>::decode(&[1, 2, 3, 4, 5])
                .expect_err("long")
                .kind(),
            damage
        );
        let pair = <(String, u8)>::decode(b"a\0");
        assert_eq!(pair.expect_err("no end").kind(), damage);
        assert_eq!(
            <String as KeyCodec>::decode(&[0xff])
                .expect_err("no text")
                .kind(),
            damage
        );
        let value = <u64 as ValueCodec>::decode(&[0; 7]);
        assert_eq!(value.expect_err("short").kind(), damage);
        assert_eq!(
            <() as ValueCodec>::decode(b"x").expect_err("long").kind(),
            damage
        );
    }
}
