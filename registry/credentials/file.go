package credentials

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// authFile is the part of docker's config.json, and of podman's auth.json, that is about credentials.
type authFile struct {
	// Entries are decoded when needed: a broken one hides no other.
	Auths       map[string]json.RawMessage `json:"auths"`
	CredHelpers map[string]string          `json:"credHelpers"`
	CredsStore  string                     `json:"credsStore"`
}

var byteOrderMark = []byte("\ufeff")

// parseAuthFile parses a file. If only a part of it is broken, it returns the rest beside the error.
func parseAuthFile(content []byte, legacy bool) (f authFile, err error) {
	content = bytes.TrimSpace(bytes.TrimPrefix(content, byteOrderMark))
	if len(content) == 0 {
		return f, nil
	}
	var into any = &f
	if legacy {
		into = &f.Auths
	}
	err = json.Unmarshal(content, into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		// Its text would quote numbers.
		return f, fmt.Errorf("%q is not of the type that docker and podman give it", wrong.Field)
	}
	if err != nil {
		return authFile{}, err
	}
	return f, nil
}

// dockerHub is the canonical host of Docker Hub.
const dockerHub = name.DefaultRegistry

// canonicalKey returns a key in the form host[/path]. URLs, which old versions of docker wrote, are keys of hosts.
func canonicalKey(key string) string {
	rest, isURL := key, false
	for _, scheme := range []string{"https://", "http://"} {
		if len(key) > len(scheme) && strings.EqualFold(key[:len(scheme)], scheme) {
			rest, isURL = key[len(scheme):], true
		}
	}
	host, path, _ := strings.Cut(rest, "/")
	host, path = strings.ToLower(host), strings.Trim(path, "/")
	switch host {
	case "docker.io", "registry-1.docker.io":
		host = dockerHub
	}
	if isURL || path == "" || path == "v1" || path == "v2" {
		return host
	}
	return host + "/" + path
}

// storeKey returns the key under which docker stores a host's credentials.
func storeKey(host string) string {
	if host == dockerHub {
		return authn.DefaultAuthKey
	}
	return host
}

// spellings lists the keys of entries for a canonical key: the one that docker writes, then others in order.
func (f authFile) spellings(canonical string) []string {
	return spellings(f.Auths, canonical)
}

func spellings[V any](entries map[string]V, canonical string) []string {
	var list []string
	for key := range entries {
		if canonicalKey(key) == canonical {
			list = append(list, key)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		switch {
		case a == storeKey(canonical):
			return -1
		case b == storeKey(canonical):
			return 1
		}
		return strings.Compare(a, b)
	})
	return list
}

// helperOf returns the credential helper that the file has for a host, and the key to ask it for. An empty helper means
// that the file itself has the credentials, whatever the default helper is. As in docker and podman, URLs are no keys
// here, except Docker Hub's.
func (f authFile) helperOf(host string) (helper, key string, ok bool) {
	for _, key := range spellings(f.CredHelpers, host) {
		if key == storeKey(host) || !strings.Contains(key, "://") {
			return f.CredHelpers[key], key, true
		}
	}
	return "", "", false
}

// entry is a value of "auths".
type entry struct {
	Auth          string `json:"auth,omitempty"` // base64 of user:password
	Username      string `json:"username,omitempty"`
	Password      string `json:"password,omitempty"`
	IdentityToken string `json:"identitytoken,omitempty"`
	RegistryToken string `json:"registrytoken,omitempty"`
}

// decodeEntry decodes an entry, which may hold nothing. Errors quote none of it.
func decodeEntry(raw json.RawMessage) (authn.AuthConfig, error) {
	var e entry
	if len(raw) > 0 && json.Unmarshal(raw, &e) != nil {
		return authn.AuthConfig{}, errors.New("is malformed")
	}
	cfg := authn.AuthConfig{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken,
		RegistryToken: e.RegistryToken}
	if e.Auth != "" {
		user, password, ok := decodeAuth(e.Auth)
		if !ok {
			return authn.AuthConfig{}, errors.New(`has an "auth" that is not base64 of USER:PASSWORD`)
		}
		cfg.Username, cfg.Password = user, password
	}
	if cfg.IdentityToken == "" && cfg.RegistryToken == "" && (cfg.Username == "" || cfg.Password == "") {
		return authn.AuthConfig{}, nil
	}
	return cfg, nil
}

// decodeAuth decodes base64 of user:password, with or without padding.
func decodeAuth(text string) (user, password string, ok bool) {
	text = strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	b, err := encoding.DecodeString(text)
	if err != nil {
		return "", "", false
	}
	user, password, ok = strings.Cut(string(b), ":")
	return user, strings.Trim(password, "\x00"), ok
}

// entryFor returns an auth file with credentials for one key, a repository or a host.
func entryFor(key, user, password string) ([]byte, error) {
	key = canonicalKey(key)
	if host, path, ok := strings.Cut(key, "/"); ok && host == dockerHub && !strings.Contains(path, "/") {
		key = host + "/library/" + path // Docker Hub's official images
	}
	made := entry{Auth: base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}
	return json.Marshal(map[string]any{"auths": map[string]entry{key: made}})
}
