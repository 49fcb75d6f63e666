package attest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/registry"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
)

const reportPredicate = "https://example.com/report/v1"

// Attestations are found in a store and in a registry, the last first, with and without a key, and beside a signature.
func TestAttestations(t *testing.T) {
	p := rt.New(t)
	s, c, key := rt.NewStore(t), newClient(t), newKey(t, "ecdsa")
	name, d := rt.PutModel(t, s, "model", 10)
	subject, dst := subjectOf(t, s, name), p.Name("team/model")
	var made []*Attestation
	for i, k := range []*sigstore.PrivateKey{nil, key, newKey(t, "ed25519")} {
		a, err := New(k, subject, reportPredicate, []byte(`{"n":`+string(rune('0'+i))+`}`))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, a)
		for range 2 { // storing again adds nothing
			if err := a.Store(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	sig, err := Sign(key, subject, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := sig.Store(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Push(t.Context(), s, name, dst, registry.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	check := func(where string, found []*Attestation, refused []error, err error, want ...string) {
		t.Helper()
		var got []string
		for _, a := range found {
			got = append(got, string(a.Predicate))
		}
		if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %s, refused %v, %v; want %s", where, got, refused, err, want)
		}
	}
	all, ours := AttestationCheck{reportPredicate, nil}, AttestationCheck{reportPredicate, key.Public()}
	found, refused, err := StoredAttestations(t.Context(), s, d, all)
	check("store", found, refused, err, `{"n":2}`, `{"n":1}`, `{"n":0}`)
	if found[0].Key == "" || !found[0].Signed || found[2].Signed {
		t.Errorf("signed by %q, %v and %v", found[0].Key, found[0].Signed, found[2].Signed)
	}
	found, refused, err = StoredAttestations(t.Context(), s, d, ours)
	check("store, by key", found, refused, err, `{"n":1}`)
	if len(refused) != 1 || !errors.Is(refused[0], sigstore.ErrOtherKey) {
		t.Errorf("refused by key: %v, want the other key's", refused)
	}
	found, refused, err = Attestations(t.Context(), c, dst, d, ours)
	check("registry, by key", found, refused, err, `{"n":1}`)
	if found[0].Descriptor.Digest != made[1].Descriptor.Digest {
		t.Errorf("found %s, want %s", found[0].Descriptor.Digest, made[1].Descriptor.Digest)
	}
	found, refused, err = StoredAttestations(t.Context(), s, d, AttestationCheck{"https://example.com/other", nil})
	check("another type", found, refused, err)
	if _, err := StoredSignature(t.Context(), s, d, SignatureCheck{Key: key.Public()}); err != nil {
		t.Errorf("the signature beside them: %v", err)
	}
}

// A statement about another image, and one with any changed byte, is refused.
func TestAttestationRefused(t *testing.T) {
	s, key := rt.NewStore(t), newKey(t, "ed25519")
	name, d := rt.PutModel(t, s, "model", 10)
	subject := subjectOf(t, s, name)
	good, err := New(key, subject, reportPredicate, []byte(`{"kl":0.125}`))
	if err != nil {
		t.Fatal(err)
	}
	put := func(bundle []byte) {
		t.Helper()
		r, err := bundleReferrer(subject, reportPredicate, bundle)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Store(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	other := subject
	other.Digest = digest.FromString("other")
	about, err := New(key, other, reportPredicate, []byte(`{"kl":0.125}`))
	if err != nil {
		t.Fatal(err)
	}
	put(about.Blobs[1])
	n := 1
	bundle := good.Blobs[1]
	for at := bytes.Index(bundle, []byte(`"payload":"`)) + len(`"payload":"`); bundle[at] != '"'; at += 7 {
		changed := bytes.Clone(bundle)
		if changed[at] = 'A'; bundle[at] == 'A' {
			changed[at] = 'B'
		}
		put(changed)
		n++
	}
	found, refused, err := StoredAttestations(t.Context(), s, d, AttestationCheck{reportPredicate, key.Public()})
	if err != nil || len(found) != 0 || len(refused) != n {
		t.Errorf("%d found, %d of %d refused, %v", len(found), len(refused), n, err)
	}
	if !errors.Is(refused[n-1], sigstore.ErrSubject) {
		t.Errorf("about another image: %v", refused[n-1])
	}
}
