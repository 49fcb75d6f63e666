//go:build unix

package store_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/storetest"
)

// TestSecretOfAnother checks that a secret written by another user is rejected.
func TestSecretOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	const other = 12345
	s := storetest.NewStore(t)
	secret(t, s)
	if err := os.Chown(s.Path(store.SecretFile), other, -1); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Secret(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "server-secret belongs to another user") {
		t.Errorf("the secret is %x, %v", b, err)
	}
	// If root uses a user's store, the secret belongs to that user, who could not read a file owned by root.
	if err := os.Remove(s.Path(store.SecretFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(s.Root(), other, -1); err != nil {
		t.Fatal(err)
	}
	secret(t, s)
	info, err := os.Stat(s.Path(store.SecretFile))
	if err != nil || !disk.OwnedByUserOrStore(info, info) {
		t.Fatal(err)
	}
	if root, err := os.Stat(s.Root()); err != nil || !disk.SameOwner(info, root) {
		t.Errorf("the secret does not belong to the store's owner: %v", err)
	}
}
