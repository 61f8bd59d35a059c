//! Key pairs for the ssh plugin: RSA of 2048 bits, in the forms that `ssh` and `sshd` read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rsa::pkcs1::{EncodeRsaPrivateKey as _, LineEnding};
use rsa::rand_core::OsRng;
use rsa::traits::PublicKeyParts as _;
use rsa::{RsaPrivateKey, RsaPublicKey};
use serde_json::{Map, Value};
use volcano_api::names::job_plugins::{SSH_AUTHORIZED_KEYS, SSH_PRIVATE_KEY, SSH_PUBLIC_KEY};

/// Length of the keys.
const BITS: usize = 2048;
/// Name of the algorithm in public keys.
const ALGORITHM: &str = "ssh-rsa";

/// Adds a fresh key pair to the data of a Secret. Takes some tenths of a second of processor time.
pub fn fill(data: &mut Map<String, Value>) -> Result<(), rsa::Error> {
    let private = RsaPrivateKey::new(&mut OsRng, BITS)?;
    let pem = private.to_pkcs1_pem(LineEnding::LF).map_err(rsa::Error::Pkcs1)?;
    let public = authorized(&private.to_public_key());
    for (key, text) in [
        (SSH_PRIVATE_KEY, pem.as_bytes()),
        (SSH_PUBLIC_KEY, public.as_bytes()),
        (SSH_AUTHORIZED_KEYS, public.as_bytes()),
    ] {
        data.insert(key.to_owned(), BASE64.encode(text).into());
    }
    Ok(())
}

/// A line of `authorized_keys`.
fn authorized(key: &RsaPublicKey) -> String {
    let mut blob = Vec::new();
    for part in [
        ALGORITHM.as_bytes().to_vec(),
        positive(key.e().to_bytes_be()),
        positive(key.n().to_bytes_be()),
    ] {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        blob.extend(length.to_be_bytes());
        blob.extend(part);
    }
    format!("{ALGORITHM} {}\n", BASE64.encode(blob))
}

/// A number whose first bit says that it is not negative.
fn positive(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.first().is_some_and(|first| first & 0x80 != 0) {
        bytes.insert(0, 0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsa::pkcs1::DecodeRsaPrivateKey as _;

    fn decoded(data: &Map<String, Value>, key: &str) -> String {
        let bytes = BASE64.decode(data[key].as_str().unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_pair_belongs_together() {
        let mut data = Map::new();
        fill(&mut data).unwrap();
        let private = decoded(&data, SSH_PRIVATE_KEY);
        assert!(private.starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
        let private = RsaPrivateKey::from_pkcs1_pem(&private).unwrap();
        assert_eq!(private.n().bits(), BITS);
        let public = decoded(&data, SSH_PUBLIC_KEY);
        assert_eq!(public, authorized(&private.to_public_key()));
        assert_eq!(public, decoded(&data, SSH_AUTHORIZED_KEYS));
    }

    #[test]
    fn a_public_key_is_written_as_sshd_reads_it() {
        // What ssh-keygen -y prints for the key of RFC-like textbook numbers: e = 65537, n = 2^16 + 1 times 2^15 + 3.
        let n = rsa::BigUint::from(0x8001_0003_u64);
        let key = RsaPublicKey::new_unchecked(n, rsa::BigUint::from(65_537_u32));
        let blob = BASE64
            .decode(authorized(&key).trim_end().strip_prefix("ssh-rsa ").unwrap())
            .unwrap();
        let expected = b"\0\0\0\x07ssh-rsa\0\0\0\x03\x01\0\x01\0\0\0\x05\0\x80\x01\0\x03";
        assert_eq!(blob, expected);
    }
}
