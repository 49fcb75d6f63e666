package sigstore

import (
	"encoding/json"
	"errors"
	"testing"
)

const otherType = "https://example.com/report/v1"

// An attestation verifies with its key, is about one manifest and of one type, and is no signature.
func TestStatement(t *testing.T) {
	for _, kind := range []string{"ecdsa", "ed25519"} {
		private, public := pair(t, kind)
		statement, err := Statement(subjectOne, otherType, []byte(`{"score":1}`))
		if err != nil {
			t.Fatal(err)
		}
		want := `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + subjectOne.Encoded() +
			`"}}],"predicateType":"` + otherType + `","predicate":{"score":1}}`
		if string(statement) != want {
			t.Errorf("statement %s\nwant %s", statement, want)
		}
		b, err := private.SignStatement(statement)
		if err != nil {
			t.Fatal(err)
		}
		got, err := public.VerifyStatement(b)
		if err != nil || string(got) != want {
			t.Errorf("verified %s, %v", got, err)
		}
		if got, hint, err := Unverified(b); err != nil || string(got) != want || hint != public.Hint() {
			t.Errorf("read %s of key %s, %v", got, hint, err)
		}
		if p, err := ParseStatement(got, subjectOne, otherType); err != nil || string(p) != `{"score":1}` {
			t.Errorf("predicate %s, %v", p, err)
		}
		if _, err := ParseStatement(got, subjectTwo, otherType); !errors.Is(err, ErrSubject) {
			t.Errorf("about another manifest: %v", err)
		}
		if _, err := ParseStatement(got, subjectOne, PredicateType); !errors.Is(err, ErrPurpose) {
			t.Errorf("of another type: %v", err)
		}
		if _, err := public.Verify(b, subjectOne); !errors.Is(err, ErrPurpose) {
			t.Errorf("as a signature: %v, want ErrPurpose", err)
		}
		_, other := pair(t, kind)
		if _, err := other.VerifyStatement(b); !errors.Is(err, ErrOtherKey) {
			t.Errorf("with another key: %v", err)
		}
		var changed bundle
		if err := json.Unmarshal(b, &changed); err != nil {
			t.Fatal(err)
		}
		for i := range changed.DSSEEnvelope.Payload {
			changed.DSSEEnvelope.Payload[i] ^= 1
			out, err := json.Marshal(changed)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := public.VerifyStatement(out); !errors.Is(err, ErrBundle) {
				t.Errorf("byte %d changed: %v, want ErrBundle", i, err)
			}
			changed.DSSEEnvelope.Payload[i] ^= 1
		}
	}
	if _, err := Statement("sha256:short", otherType, []byte("{}")); err == nil {
		t.Error("a damaged digest has a statement")
	}
}
