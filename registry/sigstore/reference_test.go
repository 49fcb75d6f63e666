package sigstore

import (
	"encoding/json"
	"errors"
	"testing"
)

const signedName = "registry.example.com/team/model:v1"

// TestReference checks the statement of a signature that names a reference, byte for byte: `cosign verify -a
// docker-reference=...` compares this annotation.
func TestReference(t *testing.T) {
	private, public := pair(t, "ed25519")
	b, err := private.Sign(subjectOne, signedName)
	if err != nil {
		t.Fatal(err)
	}
	var got bundle
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + subjectOne.Encoded() +
		`"},"annotations":{"docker-reference":"` + signedName +
		`"}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`
	if payload := string(got.DSSEEnvelope.Payload); payload != want {
		t.Errorf("statement %s\nwant %s", payload, want)
	}
	if reference, err := public.Verify(b, subjectOne); err != nil || reference != signedName {
		t.Errorf("reference %q, %v; want %q", reference, err, signedName)
	}
	if reference, err := public.Verify(sign(t, private, subjectOne), subjectOne); err != nil || reference != "" {
		t.Errorf("signed without a reference: %q, %v", reference, err)
	}
	if reference, err := public.Verify(b, subjectTwo); !errors.Is(err, ErrSubject) || reference != "" {
		t.Errorf("for another digest: %q, %v; want ErrSubject", reference, err)
	}
}

// TestReferenceOfAnotherForm: a reference that cannot be parsed is an error, not a missing reference. Other annotations
// do not matter.
func TestReferenceOfAnotherForm(t *testing.T) {
	private, public := pair(t, "ecdsa")
	for annotations, want := range map[string]error{
		`{"docker-reference":""}`:                     ErrBundle,
		`{"docker-reference":null}`:                   ErrBundle,
		`{"docker-reference":["` + signedName + `"]}`: ErrBundle,
		`{"docker-reference":{"name":"x"}}`:           ErrBundle,
		`"docker-reference"`:                          ErrBundle,
		`{}`:                                          nil,
		`null`:                                        nil,
		`{"build":7,"who":{"name":"x"},"list":["", ""]}`: nil,
	} {
		b := resign(t, private, payloadType,
			`{"_type":"`+statementType+`","subject":[{"digest":{"sha256":"`+subjectOne.Encoded()+
				`"},"annotations":`+annotations+`}],"predicateType":"`+PredicateType+`"}`)
		if reference, err := public.Verify(b, subjectOne); !errors.Is(err, want) || reference != "" {
			t.Errorf("annotations %s: %q, %v; want %v", annotations, reference, err, want)
		}
	}
}
