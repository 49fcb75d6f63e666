package credentials

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config/credentials"
	helper "github.com/docker/docker-credential-helpers/client"
	helpers "github.com/docker/docker-credential-helpers/credentials"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/registry/redact"
)

// Store stores credentials in the first file that a [Keychain] reads, or in the credential helper that this names. It
// returns the name of the helper, or the path of the file, that has them now.
func Store(ctx context.Context, addr string, cfg authn.AuthConfig) (where string, err error) {
	host := canonicalKey(addr)
	key := storeKey(host)
	in, err := loginFile()
	if err != nil {
		return "", err
	}
	if in.podman && host == dockerHub {
		key = "docker.io" // as podman writes it
	}
	path := in.path
	f, problems := in.read()
	if len(problems) > 0 {
		return "", problems[0]
	}
	defaultStore := ""
	if !in.podman && f.CredsStore == "" && len(f.CredHelpers) == 0 && len(f.Auths) == 0 {
		// As in docker: if nothing is configured, use the system's keychain if its helper is installed.
		defaultStore = credentials.DetectDefaultStore("")
		f.CredsStore = defaultStore
	}
	program, setting := f.CredsStore, "credsStore"
	if name, _, ok := f.helperOf(host); ok {
		program, setting = name, "credHelpers"
	}
	made := entry{}
	where = path
	if program != "" {
		where = helperPrefix + program
		if err := storeInHelper(ctx, program, key, cfg); err != nil {
			return "", fmt.Errorf("%w (%s in %s names it)", err, setting, path)
		}
	} else {
		made = entry{Auth: base64.StdEncoding.EncodeToString([]byte(cfg.Username + ":" + cfg.Password)),
			IdentityToken: cfg.IdentityToken}
	}
	err = editConfig(path, func(top, auths map[string]json.RawMessage) error {
		if defaultStore != "" {
			if top["credsStore"], err = json.Marshal(defaultStore); err != nil {
				return err
			}
		}
		auths[key], err = json.Marshal(made)
		return err
	})
	return where, err
}

func storeInHelper(ctx context.Context, program, key string, cfg authn.AuthConfig) error {
	run, err := helperProgram(ctx, program)
	if err != nil {
		return err
	}
	c := &helpers.Credentials{ServerURL: key, Username: cfg.Username, Secret: cfg.Password}
	if cfg.IdentityToken != "" {
		c.Username, c.Secret = tokenUser, cfg.IdentityToken
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	p := run(helpers.ActionStore)
	p.Input(bytes.NewReader(b))
	if out, err := p.Output(); err != nil {
		return helperError(program, err, []byte(redact.Secrets(string(out), c.Secret)))
	}
	return nil
}

// Erase removes the credentials of a host, or of a namespace host/path, from the files that a [Keychain] reads and from
// the credential helpers that these name for the host. What cannot be removed is an error beside what was found.
func Erase(ctx context.Context, key string) (found bool, err error) {
	key = canonicalKey(key)
	var problems []error
	for _, s := range sources() {
		if s.logout(key) == "" {
			continue // a variable, or a file that only old programs write
		}
		s.expected = false
		f, errs := s.read()
		problems = append(problems, errs...)
		if erased, err := f.eraseFromHelper(ctx, key); err != nil {
			problems = append(problems, fmt.Errorf("%w (named in %s)", err, s.place))
		} else if erased {
			found = true
		}
		list := f.spellings(key)
		if len(list) == 0 {
			continue
		}
		found = true
		err := editConfig(s.path, func(_, auths map[string]json.RawMessage) error {
			for _, k := range list {
				delete(auths, k)
			}
			return nil
		})
		if err != nil {
			problems = append(problems, err)
		}
	}
	for _, problem := range problems {
		if err == nil {
			err = problem
		} else {
			err = fmt.Errorf("%w; %w", err, problem)
		}
	}
	return found, err
}

// eraseFromHelper removes a host's credentials from the file's helper for it, if it has any there.
func (f authFile) eraseFromHelper(ctx context.Context, key string) (found bool, err error) {
	if strings.Contains(key, "/") {
		return false, nil // helpers know hosts only
	}
	name, helperKey, own := f.helperOf(key)
	if !own {
		name, helperKey = f.CredsStore, storeKey(key)
	}
	if name == "" {
		return false, nil
	}
	cfg, err := askHelper(ctx, name, helperKey)
	if err != nil || cfg == (authn.AuthConfig{}) {
		return false, err
	}
	program, err := helperProgram(ctx, name)
	if err != nil {
		return false, err
	}
	if err := helper.Erase(program, helperKey); err != nil {
		return false, fmt.Errorf("the credential helper %s%s failed: %s", helperPrefix, name, redact.Clip(err.Error()))
	}
	return true, nil
}

// editConfig applies edit to an auth file and preserves everything else in it. Only its owner can read it.
func editConfig(path string, edit func(top, auths map[string]json.RawMessage) error) error {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at
	}
	top, auths := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	b, err := place.ReadFile(path, MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if b = bytes.TrimSpace(bytes.TrimPrefix(b, byteOrderMark)); len(b) > 0 {
		if err := json.Unmarshal(b, &top); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if raw := top["auths"]; len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &auths); err != nil {
			return fmt.Errorf("%s: auths: %w", path, err)
		}
	}
	if top == nil { // JSON null
		return fmt.Errorf("%s holds no JSON object", path)
	}
	if err := edit(top, auths); err != nil {
		return err
	}
	if top["auths"], err = json.Marshal(auths); err != nil {
		return err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	if err := e.Encode(top); err != nil {
		return err
	}
	return replaceFile(path, out.Bytes())
}

// replaceFile replaces a file atomically and durably. Its mode is 0600.
func replaceFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, 0o600, func(f *os.File) error {
		if _, err := f.Write(b); err != nil {
			return err
		}
		return f.Sync()
	})
}
