//! Put and commit: values that this process offers to others.

use phalanx_spec::Scope;
use pmix::ClientCall;

use super::calls::done;
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::pmix_value_t;
use crate::pointer::Ptr;

exported! {
    fn PMIx_Put(scope: u8, key: Ptr<u8>, value: Ptr<pmix_value_t>) -> Code {
        let instance = instance()?;
        let value = from_c::value(&value.read().ok_or(BAD)?)?;
        instance.client.put_any(Scope(scope), &from_c::name(key)?, value).map_err(|error| error.status())
    }

    fn PMIx_Commit() -> Code {
        let staged = instance()?.client.take_staged().map_err(|error| error.status())?;
        done(ClientCall::Commit(staged))
    }
}
