//! Keys and certificates, made anew for every cluster: the API server's, and those of webhook servers in tests.

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// An authority that signs certificates of servers.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate as PEM: what clients trust, or a webhook's `caBundle`.
    pub certificate: String,
    /// The same as DER.
    pub certificate_der: Vec<u8>,
}

/// A private key and what goes with it, as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    ///
    /// # Errors
    /// When no random numbers are to be had.
    pub fn new() -> anyhow::Result<Authority> {
        let key = KeyPair::generate().context("making a key")?;
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "volcano test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).context("signing the authority")?;
        Ok(Authority {
            issuer: Issuer::new(params, key),
            certificate: certificate.pem(),
            certificate_der: certificate.der().to_vec(),
        })
    }

    /// A certificate for a server that is reached under these host names and addresses.
    ///
    /// # Errors
    /// When a name is none.
    pub fn server(&self, names: &[&str]) -> anyhow::Result<Identity> {
        let key = KeyPair::generate().context("making a key")?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).context("names of the certificate")?;
        params
            .distinguished_name
            .push(DnType::CommonName, "volcano test server");
        let certificate = params
            .signed_by(&key, &self.issuer)
            .context("signing a certificate")?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

impl Authority {
    /// A certificate that says who a client is, and which groups that one is in.
    pub(crate) fn client(&self, name: &str, group: &str) -> anyhow::Result<Identity> {
        let key = KeyPair::generate().context("making a key")?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params
            .signed_by(&key, &self.issuer)
            .context("signing a certificate")?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// A key that signs service account tokens: the private half, and the public half.
pub(crate) fn signing_key() -> anyhow::Result<(String, String)> {
    let key = KeyPair::generate().context("making a key")?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_a_new_one() {
        let authority = Authority::new().unwrap();
        let (one, two) = (
            authority.server(&["127.0.0.1", "localhost"]).unwrap(),
            authority.server(&["127.0.0.1"]).unwrap(),
        );
        assert_ne!(one.key, two.key);
        assert!(one.key.starts_with("-----BEGIN PRIVATE KEY-----"), "PKCS#8");
        assert!(one.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        let (private, public) = signing_key().unwrap();
        assert!(private.starts_with("-----BEGIN PRIVATE KEY-----"), "PKCS#8");
        assert!(public.starts_with("-----BEGIN PUBLIC KEY-----"), "SPKI");
    }
}
