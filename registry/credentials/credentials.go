package credentials

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/credentials"
	helper "github.com/docker/docker-credential-helpers/client"
	helpers "github.com/docker/docker-credential-helpers/credentials"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/ingotml/ingot/atomicfile"
	"github.com/ingotml/ingot/registry/redact"
)

// docker/cli's package reads config.json and selects the credential helper. Writing is implemented here, because that
// package drops unknown keys and prints to standard error.

// dockerConfig reads docker's config.json and returns it with its path. The file need not exist.
func dockerConfig() (*configfile.ConfigFile, string, error) {
	dir := os.Getenv(config.EnvOverrideConfigDir)
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, "", err
		}
		dir = filepath.Join(home, ".docker")
	}
	f, err := config.Load(dir)
	return f, filepath.Join(dir, config.ConfigFileName), err
}

// credentialKey returns the key under which docker stores a registry's credentials.
func credentialKey(addr string) string {
	if addr == name.DefaultRegistry {
		return authn.DefaultAuthKey
	}
	return addr
}

func helperOf(f *configfile.ConfigFile, key string) string {
	if h, ok := f.CredentialHelpers[key]; ok {
		return h
	}
	return f.CredentialsStore
}

// Store stores credentials. It returns the name of the credential helper, or the path of the file, that has
// them now.
func Store(addr string, cfg authn.AuthConfig) (where string, err error) {
	key := credentialKey(addr)
	f, path, err := dockerConfig()
	if err != nil {
		return "", err
	}
	defaultStore := ""
	if !f.ContainsAuth() {
		// As in docker: if nothing is configured, use the system's keychain if its helper is installed.
		defaultStore = credentials.DetectDefaultStore("")
		f.CredentialsStore = defaultStore
	}
	entry := map[string]string{}
	where = path
	if program := helperOf(f, key); program != "" {
		where = helperPrefix + program
		run, err := helperProgram(program)
		if err != nil {
			return "", err
		}
		c := &helpers.Credentials{ServerURL: key, Username: cfg.Username, Secret: cfg.Password}
		if cfg.IdentityToken != "" {
			c.Username, c.Secret = tokenUser, cfg.IdentityToken
		}
		if err := helper.Store(run, c); err != nil {
			return "", fmt.Errorf("%s: %s", where, redact.Secrets(redact.Clip(err.Error()), c.Secret))
		}
	} else {
		entry["auth"] = base64.StdEncoding.EncodeToString([]byte(cfg.Username + ":" + cfg.Password))
		if cfg.IdentityToken != "" {
			entry["identitytoken"] = cfg.IdentityToken
		}
	}
	err = editConfig(path, func(top, auths map[string]json.RawMessage) error {
		if defaultStore != "" {
			if top["credsStore"], err = json.Marshal(defaultStore); err != nil {
				return err
			}
		}
		auths[key], err = json.Marshal(entry)
		return err
	})
	return where, err
}

// Erase removes a registry's credentials from its credential helper and from the file.
func Erase(addr string) (found bool, err error) {
	key := credentialKey(addr)
	f, path, err := dockerConfig()
	if err != nil {
		return false, err
	}
	if name := helperOf(f, key); name != "" {
		program, err := helperProgram(name)
		if err != nil {
			return false, err
		}
		_, err = helper.Get(program, key)
		if err == nil {
			found = true
			err = helper.Erase(program, key)
		}
		if err != nil && !helpers.IsErrCredentialsNotFound(err) {
			return false, fmt.Errorf("%s%s: %s", helperPrefix, name, redact.Clip(err.Error()))
		}
	}
	var keys []string
	for k := range f.AuthConfigs {
		if k == key || credentials.ConvertToHostname(k) == addr { // older files have full URLs as keys
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return found, nil
	}
	return true, editConfig(path, func(_, auths map[string]json.RawMessage) error {
		for _, k := range keys {
			delete(auths, k)
		}
		return nil
	})
}

// editConfig applies edit to config.json and preserves everything else in the file. Only its owner can read it.
func editConfig(path string, edit func(top, auths map[string]json.RawMessage) error) error {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at
	}
	top, auths := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(bytes.TrimSpace(b)) > 0 {
		if err := json.Unmarshal(b, &top); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if raw := top["auths"]; raw != nil {
		if err := json.Unmarshal(raw, &auths); err != nil {
			return fmt.Errorf("%s: auths: %w", path, err)
		}
	}
	if top == nil || auths == nil { // JSON null
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
