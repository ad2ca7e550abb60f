//! Credentials: proof of this process's identity, and validation of another's.

use phalanx_spec::Status;
use phalanx_wire::cmd::credential::{GetCredential, ValidateCredential};
use pmix::{Blob, ClientCall, ClientReturn, Error, Info};

use super::calls::{found, infos, submit};
use crate::guard::{BAD, Code, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::release::free_array;
use crate::{cmem, from_c, to_c};

/// `pmix_credential_cbfunc_t`
type CredentialCallback =
    Option<extern "C" fn(Code, Ptr<pmix_byte_object_t>, Ptr<pmix_info_t>, usize, Ptr<Opaque>)>;
/// `pmix_validation_cbfunc_t`
type ValidationCallback = Option<extern "C" fn(Code, Ptr<pmix_info_t>, usize, Ptr<Opaque>)>;

exported! {
    fn PMIx_Get_credential(
        info: Ptr<pmix_info_t>, count: usize, credential: Ptr<pmix_byte_object_t>,
    ) -> Code {
        let instance = instance()?;
        if credential.is_null() {
            return Err(BAD);
        }
        let call = ClientCall::from(GetCredential { info: from_c::infos(info, count)? });
        let (given, _) = given(instance.client.perform(call))?;
        credential.write(to_c::blob(&given));
        Ok(())
    }

    /// The callback's arguments are freed when it returns.
    fn PMIx_Get_credential_nb(
        info: Ptr<pmix_info_t>, count: usize, callback: CredentialCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        instance()?;
        let callback = callback.ok_or(BAD)?;
        let call = ClientCall::from(GetCredential { info: from_c::infos(info, count)? });
        submit(call, move |answer| {
            match given(answer).and_then(|(blob, infos)| Ok((blob, to_c::infos(&infos)?, infos.len()))) {
                Ok((blob, infos, count)) => {
                    let at = cmem::one(to_c::blob(&blob));
                    callback(Status::SUCCESS.0, at, infos, count, cbdata);
                    free_array(at, 1);
                    free_array(infos, count);
                }
                Err(status) => callback(status.0, Ptr::NULL, Ptr::NULL, 0, cbdata),
            }
        })
    }

    fn PMIx_Validate_credential(
        credential: Ptr<pmix_byte_object_t>, info: Ptr<pmix_info_t>, count: usize,
        results: Ptr<Ptr<pmix_info_t>>, nresults: Ptr<usize>,
    ) -> Code {
        infos(validate(credential, info, count)?, results, nresults)
    }

    /// The callback's arguments are freed when it returns.
    fn PMIx_Validate_credential_nb(
        credential: Ptr<pmix_byte_object_t>, info: Ptr<pmix_info_t>, count: usize, callback: ValidationCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        let callback = callback.ok_or(BAD)?;
        submit(validate(credential, info, count)?, move |answer| {
            let (mut status, infos) = found(answer);
            let array = to_c::infos(&infos).unwrap_or_else(|unfit| {
                status = unfit;
                Ptr::NULL
            });
            let count = if array.is_null() { 0 } else { infos.len() };
            callback(status.0, array, count, cbdata);
            free_array(array, count);
        })
    }
}

fn validate(
    credential: Ptr<pmix_byte_object_t>,
    info: Ptr<pmix_info_t>,
    count: usize,
) -> Result<ClientCall, Status> {
    instance()?;
    let credential = from_c::blob(credential.read().ok_or(BAD)?);
    Ok(ValidateCredential { credential, info: from_c::infos(info, count)? }.into())
}

fn given(answer: Result<ClientReturn, Error>) -> Result<(Blob, Vec<Info>), Status> {
    match answer.map_err(|error| error.status())? {
        ClientReturn::Credential(given) => given,
        _ => Err(Status::ERROR),
    }
}
