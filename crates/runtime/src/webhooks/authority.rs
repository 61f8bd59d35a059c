//! Makes the certificate of the webhook manager, and the authority that signs it.

use super::options::SecretName;
use crate::serve::tls::{self, Part, Pem};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::pki_types::{ServerName, UnixTime};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long a certificate holds.
const HOLDS: Duration = Duration::from_secs(3650 * 24 * 3600);
/// A certificate that holds for less than this is replaced.
pub const RENEW_BEFORE: Duration = Duration::from_secs(90 * 24 * 3600);

/// A new authority, and a certificate that it signed for the Service. The authority's key is not kept: a new
/// certificate comes with a new authority.
///
/// # Errors
/// When no random numbers are to be had, or a name is none.
pub fn make(of: &SecretName, now: SystemTime) -> Result<Pem, rcgen::Error> {
    let host = of.host();
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, host.as_str());
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(&mut ca, now);
    let ca_key = KeyPair::generate()?;
    let ca_pem = ca.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(ca, ca_key);

    let names = [
        of.service.clone(),
        format!("{}.{}", of.service, of.namespace),
        host.clone(),
    ];
    let mut server = CertificateParams::new(names)?;
    server.distinguished_name.push(DnType::CommonName, host);
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    valid(&mut server, now);
    let key = KeyPair::generate()?;
    let cert = server.signed_by(&key, &issuer)?.pem();
    Ok(Pem {
        ca: ca_pem.into_bytes(),
        cert: cert.into_bytes(),
        key: key.serialize_pem().into_bytes(),
    })
}

/// From yesterday, for clocks that are late.
fn valid(params: &mut CertificateParams, now: SystemTime) {
    params.not_before = (now - DAY).into();
    params.not_after = (now + HOLDS).into();
}

/// Whether the API server accepts the certificate for the Service, and will for a while.
///
/// # Errors
/// Why not.
pub fn check(pem: &Pem, of: &SecretName, at: SystemTime) -> Result<(), String> {
    tls::config(pem).map_err(|bad| bad.to_string())?;
    let roots = tls::roots(&pem.ca).map_err(|bad| bad.to_string())?;
    let chain = tls::certificates(&pem.cert, Part::Cert).map_err(|bad| bad.to_string())?;
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), tls::provider())
        .build()
        .map_err(|error| error.to_string())?;
    let host = ServerName::try_from(of.host()).map_err(|error| error.to_string())?;
    let (server, between) = chain.split_first().ok_or("no certificate in it")?;
    let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap_or_default());
    let verified = verifier.verify_server_cert(server, between, &host, &[], at);
    verified.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(service: &str) -> SecretName {
        SecretName {
            namespace: "volcano-system".to_owned(),
            name: "volcano-admission-secret".to_owned(),
            service: service.to_owned(),
        }
    }

    #[test]
    fn a_certificate_holds_for_its_service_for_ten_years() {
        let now = SystemTime::now();
        let of = named("volcano-admission-service");
        let pem = make(&of, now).unwrap();
        check(&pem, &of, now).unwrap();
        check(&pem, &of, now + HOLDS - DAY).unwrap();
        let late = check(&pem, &of, now + HOLDS + DAY).unwrap_err();
        assert!(late.contains("expired"), "{late}");
        let other = check(&pem, &named("other"), now).unwrap_err();
        assert!(other.contains("not valid for name"), "{other}");
        assert_ne!(make(&of, now).unwrap(), pem, "every key is a new one");
    }

    #[test]
    fn a_key_that_is_not_the_certificates_is_told() {
        let now = SystemTime::now();
        let of = named("s");
        let (mut pem, other) = (make(&of, now).unwrap(), make(&of, now).unwrap());
        pem.key = other.key;
        assert!(check(&pem, &of, now).unwrap_err().contains("Cert"));
        pem.cert = other.cert;
        let why = check(&pem, &of, now).unwrap_err();
        assert!(
            why.contains("UnknownIssuer") || why.contains("BadSignature"),
            "{why}"
        );
    }

    #[test]
    fn keys_do_not_get_into_logs() {
        let pem = make(&named("s"), SystemTime::now()).unwrap();
        assert_eq!(format!("{pem:?}"), "Pem(..)");
    }
}
