//! Bytes that encode no JavaScript value.

use super::*;

#[test]
fn non_canonical_bytes_are_rejected() {
    let refused = [
        ("", "truncated"),
        ("18", "truncated"),
        ("6161 00", "bytes after the end"),
        ("1817", "shortest"),
        ("190001", "shortest"),
        ("7800", "shortest"),
        ("9800", "shortest"),
        ("d80140", "shortest"),
        ("f814", "shortest"),
        ("f93c00", "shortest"),
        ("fa3fc00000", "shortest"),
        ("1c", "not CBOR"),
        ("f0", "unknown simple"),
        ("9fff", "indefinite"),
        ("bfff", "indefinite"),
        ("5fff", "indefinite"),
        ("7fff", "indefinite"),
        ("ff", "indefinite"),
        ("1b0020000000000000", "safe integer"),
        ("3b001fffffffffffff", "safe integer"),
        ("fb3ff0000000000000", "float that is an integer"),
        ("fb0000000000000000", "float that is an integer"),
        ("fbfff8000000000000", "NaN"),
        ("fb7ff8000000000001", "NaN"),
        ("62c328", "UTF-8"),
        ("63eda080", "UTF-8"),
        ("8101 01", "after the end"),
        ("8201", "truncated"),
        ("a1 6161", "truncated"),
        ("a1 01 01", "no string"),
        ("a2 6161 01 6161 02", "property that occurs twice"),
        ("d901114161", "WTF-8"),
        ("d9011146eda0bdedb880", "WTF-8"),
        ("d901116161", "byte string"),
        ("d9010282 01 01", "key that occurs twice"),
        ("d9010282 c24101 c24101", "key that occurs twice"),
        ("d9010282 d81ca0 d81d00", "key that occurs twice"),
        ("d9010281 fb8000000000000000", "−0"),
        ("d90102a0", "Set"),
        ("d90103a2 01 01 01 02", "key that occurs twice"),
        ("d90103a1 fb8000000000000000 01", "−0"),
        ("d9010380", "Map"),
        ("c100", "not a float"),
        ("c1fb8000000000000000", "time"),
        ("c1fb7ff0000000000000", "time"),
        ("c1fb3f00000000000000", "time"),
        ("c1fb42a0000000000000", "time"),
        ("c24100", "leading zeros"),
        ("c201", "byte string"),
        ("d81c01", "no object"),
        ("d81c6161", "no object"),
        ("d81cc24101", "no object"),
        ("d81ca0", "not shared"),
        ("d81cd81ca0", "unknown tag"),
        ("82 d81ca0 d81cd81d00", "unknown tag"),
        ("d81d00", "reference to nothing"),
        ("82 d81d00 d81ca0", "reference to nothing"),
        ("82 d81ca0 d81d01", "reference to nothing"),
        ("82 d81ca0 d81d20", "no length"),
        ("d84d4101", "part of an element"),
        ("d84041 01", "unknown tag"),
        ("d9d9f701", "unknown tag"),
        ("d81b a0", "no array"),
        ("82 d81b 80 01", "without a name"),
        ("d81b 81 01", "without a name"),
        ("d81b 82 63466f6f 01", "unknown generic"),
        ("d81b 81 66526567457870", "unknown generic"),
        ("d81b 83 66526567457870 6161 626767", "flags"),
        ("d81b 83 66526567457870 6161 626769 00", "after the end"),
        ("d81b 83 66526567457870 6161 626967", "flags"),
        ("d81b 83 66526567457870 6161 627576", "flags"),
        ("d81b 83 66526567457870 6161 6178", "flags"),
        ("d81b 82 67426f6f6c65616e 01", "box"),
        ("d81b 82 66537472696e67 01", "no string"),
        ("d81b 82 66426967496e74 d9010280", "box"),
        ("d81b 83 654172726179 20 a0", "no length"),
        ("d81b 83 654172726179 1b0000000100000000 a0", "array length"),
        ("d81b 83 654172726179 01 80", "properties"),
        ("d81b 83 654172726179 00 a0", "without holes"),
        ("d81b 83 654172726179 01 a1 6130 01", "without holes"),
        ("d81b 83 654172726179 01 a1 6131 01", "misplaced"),
        ("d81b 83 654172726179 03 a2 6131 01 6130 01", "misplaced"),
        ("d81b 83 654172726179 03 a2 6161 01 6130 01", "misplaced"),
        ("d81b 83 654172726179 03 a1 666c656e677468 01", "misplaced"),
        ("d81b 82 654572726f72 80", "properties"),
        ("d81b 82 654572726f72 a1 6161 01", "unknown property"),
        ("d81b 82 654572726f72 a1 676d657373616765 01", "no string"),
        ("d81b 82 654572726f72 a2 65737461636b 60 676d657373616765 60", "unknown property"),
        ("d81b 82 654572726f72 a2 676d657373616765 60 676d657373616765 60", "unknown property"),
        ("d81b 82 654572726f72 a2 656361757365 01 65737461636b 60", "unknown property"),
        ("d81b 83 6b4172726179427566666572 4101 00", "beyond its maximum"),
        ("d81b 83 6b4172726179427566666572 4101 f6", "no length"),
        ("d81b 85 6456696577 63466f6f", "unknown class"),
    ];
    let mut others = vec![];
    for (bytes, what) in refused {
        let error = match decode(&hex(bytes)) {
            Ok(value) => panic!("{bytes} is {value:?}"),
            Err(error) => error,
        };
        if !error.what().contains(what) {
            others.push(format!("{bytes}: {error}, not {what}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn views_stay_inside_their_buffers() {
    let view = |class: &str, buffer: &str, rest: &str| hex(&view(class, buffer, rest));
    let growing = "d81b836b4172726179427566666572 44010203041864";
    let fixed = "d81b826b4172726179427566666572 4401020304";
    decode(&view("Int16Array", growing, "02 01")).unwrap();
    let refused = [
        (view("Int16Array", growing, "01 01"), "outside"),
        (view("Int16Array", growing, "02 02"), "outside"),
        (view("Int16Array", growing, "06 f6"), "outside"),
        (view("Int16Array", growing, "20 01"), "no length"),
        (view("Int16Array", growing, "00 20"), "no length"),
        (view("BigInt64Array", growing, "00 1b001fffffffffffff"), "outside"),
        (view("Int8Array", fixed, "00 04"), "stand alone"),
        (view("Int8Array", "4401020304", "00 04"), "no buffer"),
        (view("Int8Array", "d81d00", "00 04"), "reference to nothing"),
        (view("Int8Array", "d81c01", "00 04"), "no buffer"),
    ];
    for (bytes, what) in refused {
        let error = decode(&bytes).expect_err(what);
        assert!(error.what().contains(what), "{bytes:02x?}: {error}");
    }
    // A view whose buffer is the unfinished object around it.
    let inside = [hex("d81c 81"), view("Int8Array", "d81d00", "00 00")].concat();
    assert!(decode(&inside).unwrap_err().what().contains("no buffer"));
    // A fixed-length buffer must not be followed by a length.
    let shared = [hex("82 d81c"), hex(fixed), view("Int8Array", "d81d00", "00 f6")].concat();
    assert!(decode(&shared).unwrap_err().what().contains("outside"));
}
