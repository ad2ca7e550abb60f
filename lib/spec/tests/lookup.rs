use phalanx_spec::*;

#[test]
fn numbers_and_names_find_each_other() {
    assert_eq!(Status::ERR_NOT_FOUND, Status(-46));
    assert_eq!(Status::ERR_NOT_FOUND.to_string(), "PMIX_ERR_NOT_FOUND (-46)");
    assert_eq!(Status(-9999).to_string(), "status -9999");
    assert_eq!(format!("{:?}", Status::EVENT_JOB_END), "PMIX_EVENT_JOB_END");
    assert_eq!(Status::from_name("PMIX_ERR_JOB_TERMINATED"), Some(Status::EVENT_JOB_END));
    assert_eq!(Status::from_name("PMIX_NO_SUCH"), None);
    assert_eq!(Status::SUCCESS.name(), Some("PMIX_SUCCESS"));
    assert!(Status::ERR_NOT_FOUND.describe().is_some());
    assert_eq!(Rank::UNDEF.name(), Some("PMIX_RANK_UNDEF"));
    assert_eq!(Rank(12).to_string(), "12");
    assert!(Rank(12).is_process() && !Rank::WILDCARD.is_process());
    assert_eq!(DataType::BYTE_OBJECT, DataType(27));
    assert_eq!(Command::GDS_FALLBACK, Command(39));
    assert_eq!(Command::REQ.to_string(), "REQ");
    assert_eq!(format!("{:?}", Scope(77)), "Scope(77)");
}

#[test]
fn every_name_leads_to_its_value_and_back() {
    for status in Status::all() {
        let name = status.name().unwrap();
        assert_eq!(Status::from_name(name), Some(status), "{name}");
    }
    assert_eq!(Command::all().map(|command| command.0).collect::<Vec<_>>(), (0..=39).collect::<Vec<_>>());
}

#[test]
fn sets_print_their_members() {
    let both = IofChannel::STDOUT | IofChannel::STDERR;
    assert_eq!(both.to_string(), "PMIX_FWD_STDOUT_CHANNEL|PMIX_FWD_STDERR_CHANNEL");
    assert!(both.contains(IofChannel::STDERR) && !both.intersects(IofChannel::STDIN));
    assert_eq!(IofChannel::NONE.to_string(), "PMIX_FWD_NO_CHANNELS");
    assert_eq!(IofChannel(0x101).to_string(), "PMIX_FWD_STDIN_CHANNEL|0x100");
}

#[test]
fn attributes_are_found_by_key_and_by_name() {
    let size = attribute(keys::JOB_SIZE).unwrap();
    assert_eq!((size.name, size.key, size.data_type), ("PMIX_JOB_SIZE", "pmix.job.size", DataType::UINT32));
    assert_eq!(attribute_by_name("PMIX_JOB_SIZE"), Some(size));
    assert_eq!(attribute("pmix.no.such"), None);
    for attribute in attributes() {
        assert_eq!(attribute_by_name(attribute.name), Some(attribute));
        assert_eq!(phalanx_spec::attribute(attribute.key).unwrap().key, attribute.key);
        assert!(attribute.key.len() <= MAX_KEYLEN);
    }
}

#[test]
fn a_key_with_several_names_answers_with_the_current_one() {
    assert_eq!(attribute(keys::ALLOC_NETWORK).unwrap().name, "PMIX_ALLOC_FABRIC");
    assert_eq!(attribute(keys::PROC_DATA).unwrap().name, "PMIX_PROC_INFO_ARRAY");
    assert_eq!(attribute(keys::DEBUG_STOP_IN_APP).unwrap().name, "PMIX_DEBUG_STOP_IN_APP");
}

#[test]
fn several_types_may_be_legal() {
    let cpusets = attribute(keys::LOCAL_CPUSETS).unwrap();
    assert_eq!(cpusets.data_type, DataType::DATA_ARRAY);
    assert!(cpusets.accepts(DataType::STRING) && !cpusets.accepts(DataType::BOOL));
}

#[test]
fn required_attributes_are_listed_per_function() {
    let get = required::for_api("PMIx_Get");
    assert_eq!(get.len(), 2);
    assert!(get[0].keys.contains(&keys::OPTIONAL));
    assert!(!required::for_api("PMIx_server_register_nspace").is_empty());
    assert!(required::for_api("PMIx_Put").is_empty());
}

#[test]
fn limits_are_those_of_the_c_arrays() {
    assert_eq!((MAX_NSLEN, MAX_KEYLEN), (255, 511));
}
