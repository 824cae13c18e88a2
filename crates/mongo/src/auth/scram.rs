//! SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side. No password is kept: of what is stored nobody can make a
//! proof.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use drumlin_doc::{Code, Refusal};
use hmac::{Hmac, KeyInit, Mac};
use md5::Digest;
use subtle::ConstantTimeEq;

/// Longest message of a client.
const MESSAGE_BYTES_MAX: usize = 4096;
/// What a client without channel binding says of it: `n,,` in base 64.
const NO_BINDING: &str = "biws";

/// A mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    Sha1,
    Sha256,
}

/// What is kept of a password for one mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) iterations: u32,
    pub(crate) salt: Vec<u8>,
    pub(crate) stored_key: Vec<u8>,
    pub(crate) server_key: Vec<u8>,
}

/// The one refusal of all that may be wrong with a name or a password.
pub(crate) fn failed() -> Refusal {
    Refusal::new(Code::AuthenticationFailed, "Authentication failed.")
}

impl Mechanism {
    /// Both of them.
    pub(crate) const ALL: [Self; 2] = [Self::Sha1, Self::Sha256];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "SCRAM-SHA-1",
            Self::Sha256 => "SCRAM-SHA-256",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    fn iterations(self) -> u32 {
        match self {
            Self::Sha1 => 10_000,
            Self::Sha256 => 15_000,
        }
    }

    /// Bytes of a salt, MongoDB's.
    pub(crate) fn salt_bytes(self) -> usize {
        match self {
            Self::Sha1 => 16,
            Self::Sha256 => 28,
        }
    }

    fn hmac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        fn of<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
            let mut mac = <M as KeyInit>::new_from_slice(key).expect("a key may have any length");
            mac.update(text);
            mac.finalize().into_bytes().to_vec()
        }
        match self {
            Self::Sha1 => of::<Hmac<sha1::Sha1>>(key, text),
            Self::Sha256 => of::<Hmac<sha2::Sha256>>(key, text),
        }
    }

    fn hash(self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => sha1::Sha1::digest(text).to_vec(),
            Self::Sha256 => sha2::Sha256::digest(text).to_vec(),
        }
    }

    /// The password as the mechanism takes it.
    ///
    /// # Errors
    /// `BadValue` for a password that has characters which there may not be.
    fn prepared(self, user: &str, password: &str) -> Result<Vec<u8>, Refusal> {
        match self {
            Self::Sha1 => {
                let text = format!("{user}:mongo:{password}");
                let digest = md5::Md5::digest(text.as_bytes());
                Ok(digest
                    .iter()
                    .flat_map(|byte| format!("{byte:02x}").into_bytes())
                    .collect())
            }
            Self::Sha256 => {
                let wrong = |_| {
                    Refusal::bad_value("the password has characters that SASLprep does not allow")
                };
                Ok(stringprep::saslprep(password)
                    .map_err(wrong)?
                    .as_bytes()
                    .to_vec())
            }
        }
    }

    /// What is kept of a password. Takes milliseconds.
    pub(crate) fn credentials(
        self,
        user: &str,
        password: &str,
        salt: Vec<u8>,
    ) -> Result<Credentials, Refusal> {
        let prepared = self.prepared(user, password)?;
        let iterations = self.iterations();
        let mut salted = vec![0; self.hash(&[]).len()];
        match self {
            Self::Sha1 => {
                pbkdf2::pbkdf2_hmac::<sha1::Sha1>(&prepared, &salt, iterations, &mut salted)
            }
            Self::Sha256 => {
                pbkdf2::pbkdf2_hmac::<sha2::Sha256>(&prepared, &salt, iterations, &mut salted)
            }
        }
        Ok(Credentials {
            iterations,
            salt,
            stored_key: self.hash(&self.hmac(&salted, b"Client Key")),
            server_key: self.hmac(&salted, b"Server Key"),
        })
    }

    /// Credentials that no password has: who asks for a user that is not there sees no difference. The salt is made from the name,
    /// so that it is the same the next time.
    pub(crate) fn nobody(self, secret: &[u8], user: &str) -> Credentials {
        let mut salt = self.hmac(secret, user.as_bytes());
        salt.resize(self.salt_bytes(), 7);
        Credentials {
            iterations: self.iterations(),
            salt,
            stored_key: self.hmac(secret, b"stored"),
            server_key: self.hmac(secret, b"server"),
        }
    }
}

/// The name that a client's first message begins with.
///
/// # Errors
/// `AuthenticationFailed`, `BadValue` for what is no such message.
pub(crate) fn first(message: &[u8]) -> Result<First, Refusal> {
    let wrong = || Refusal::bad_value("the first message of a SCRAM conversation is malformed");
    let text = std::str::from_utf8(message).map_err(|_| wrong())?;
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(wrong());
    }
    // No channel binding, and nobody else's name.
    let bare = text
        .strip_prefix("n,,")
        .or_else(|| text.strip_prefix("y,,"))
        .ok_or_else(wrong)?;
    let mut parts = bare.split(',');
    let name = parts
        .next()
        .and_then(|part| part.strip_prefix("n="))
        .ok_or_else(wrong)?;
    let nonce = parts
        .next()
        .and_then(|part| part.strip_prefix("r="))
        .ok_or_else(wrong)?;
    if nonce.is_empty() {
        return Err(wrong());
    }
    Ok(First {
        user: name.replace("=2C", ",").replace("=3D", "="),
        bare: bare.to_owned(),
        nonce: nonce.to_owned(),
    })
}

/// A client's first message.
#[derive(Clone, Debug)]
pub(crate) struct First {
    pub(crate) user: String,
    bare: String,
    nonce: String,
}

/// A conversation that waits for the client's proof.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    mechanism: Mechanism,
    credentials: Credentials,
    nonce: String,
    /// The first two messages.
    messages: String,
}

impl Exchange {
    /// The beginning of a conversation, and the server's first message. `random` is new.
    pub(crate) fn begin(
        mechanism: Mechanism,
        credentials: Credentials,
        first: &First,
        random: &[u8],
    ) -> (Self, String) {
        let nonce = format!("{}{}", first.nonce, STANDARD.encode(random));
        let salt = STANDARD.encode(&credentials.salt);
        let reply = format!("r={nonce},s={salt},i={}", credentials.iterations);
        let exchange = Self {
            mechanism,
            credentials,
            nonce,
            messages: format!("{},{reply}", first.bare),
        };
        (exchange, reply)
    }

    /// The server's last message, where the client's shows that it knows the password.
    ///
    /// # Errors
    /// `AuthenticationFailed`.
    pub(crate) fn finish(&self, message: &[u8]) -> Result<String, Refusal> {
        let text = std::str::from_utf8(message).map_err(|_| failed())?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or_else(failed)?;
        let mut parts = without_proof.split(',');
        let binding = parts.next().and_then(|part| part.strip_prefix("c="));
        let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
        // `y,,` says that the client could bind channels and thinks that we cannot, which is so.
        let is_bound = matches!(binding, Some(NO_BINDING | "eSws"));
        if !is_bound || nonce != Some(self.nonce.as_str()) {
            return Err(failed());
        }
        let proof = STANDARD.decode(proof).map_err(|_| failed())?;
        let signed = format!("{},{without_proof}", self.messages);
        let signature = self
            .mechanism
            .hmac(&self.credentials.stored_key, signed.as_bytes());
        if proof.len() != signature.len() {
            return Err(failed());
        }
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let is_known = self
            .mechanism
            .hash(&client_key)
            .ct_eq(&self.credentials.stored_key);
        if !bool::from(is_known) && !drumlin_base::bug!("mongo-proof-unchecked") {
            return Err(failed());
        }
        let own = self
            .mechanism
            .hmac(&self.credentials.server_key, signed.as_bytes());
        Ok(format!("v={}", STANDARD.encode(own)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conversation of RFC 7677, whose nonce and salt are given.
    #[test]
    fn the_conversation_of_the_specification_is_had() {
        let salt = STANDARD
            .decode("W22ZaJ0SNY7soEsUEjb6gQ==")
            .expect("base 64");
        let mut credentials = Mechanism::Sha256
            .credentials("user", "pencil", salt)
            .expect("a password");
        assert_eq!(credentials.iterations, 15_000);
        // It has 4096 iterations.
        let mut salted = vec![0; 32];
        pbkdf2::pbkdf2_hmac::<sha2::Sha256>(b"pencil", &credentials.salt, 4096, &mut salted);
        credentials.iterations = 4096;
        credentials.stored_key =
            Mechanism::Sha256.hash(&Mechanism::Sha256.hmac(&salted, b"Client Key"));
        credentials.server_key = Mechanism::Sha256.hmac(&salted, b"Server Key");
        let begin = first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").expect("a message");
        assert_eq!(begin.user, "user");
        let (mut exchange, _) = Exchange::begin(Mechanism::Sha256, credentials, &begin, b"x");
        exchange.nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned();
        exchange.messages = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".to_owned();
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(
            exchange.finish(last.as_bytes()),
            Ok("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".to_owned())
        );
        for (from, to) in [
            ("p=dHzb", "p=dHzc"),
            ("c=biws", "c=biwt"),
            ("r=rOpr", "r=rOps"),
            (",p=", ",q="),
        ] {
            assert_eq!(
                exchange.finish(last.replace(from, to).as_bytes()),
                Err(failed())
            );
        }
    }

    #[test]
    fn wrong_first_messages_are_refused() {
        for wrong in [
            "",
            "p=tls-unique,,n=a,r=b",
            "n,a=other,n=a,r=b",
            "n,,r=b",
            "n,,n=a",
            "n,,n=a,r=",
        ] {
            assert!(first(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(first(b"n,,n=a=2Cb=3D,r=x").expect("a message").user, "a,b=");
    }
}
