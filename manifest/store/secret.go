package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest/store/disk"
)

// SecretSize is the number of bytes of a store's secret.
const SecretSize = 32

// errSecretUnfit means that a secret must be replaced, because others may have read it or its size is wrong.
var errSecretUnfit = errors.New("the secret must be replaced")

// Secret returns random bytes that only the owner of the store can read. A process that knows them therefore runs as
// that user. The first call creates the file; concurrent processes get the same secret. A file that is damaged or
// readable by other users is replaced. A file that belongs to another user is an error.
func (s *Store) Secret(ctx context.Context) ([]byte, error) {
	secret, err := s.readSecret()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errSecretUnfit) {
		secret, err = s.makeSecret(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the store's secret: %w", err)
	}
	return secret, nil
}

func (s *Store) readSecret() ([]byte, error) {
	path := s.Path(SecretFile)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a named pipe would block
		return nil, errSecretUnfit
	}
	f, err := place.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	root, err := os.Stat(s.root)
	if err != nil {
		return nil, err
	}
	switch {
	case !disk.OwnedByUserOrStore(info, root):
		return nil, fmt.Errorf("%s belongs to another user", f.Name())
	case disk.OthersHaveAccess(info.Mode()) || info.Size() != SecretSize:
		return nil, errSecretUnfit
	}
	secret := make([]byte, SecretSize)
	if _, err := io.ReadFull(f, secret); err != nil {
		return nil, err
	}
	return secret, nil
}

// makeSecret writes a new secret, unless another process has already done so. The index lock serializes processes.
func (s *Store) makeSecret(ctx context.Context) ([]byte, error) {
	unlock, err := s.locks.Index(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	secret, err := s.readSecret()
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errSecretUnfit) {
		return secret, err
	}
	secret = make([]byte, SecretSize)
	rand.Read(secret) // never fails
	return secret, s.replaceFileMode(SecretFile, secret, 0o600)
}
