package hub

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/settings"
)

// Options configure a [Client]. The zero value reads public repositories of the Hugging Face hub, without a cache.
type Options struct {
	Endpoint string // of the Hugging Face hub; "" = https://huggingface.co
	Token    string // for the endpoint; "" = anonymous
	// TokenFrom is where the token is, for messages: a variable of the environment, or a file; "" = HF_TOKEN.
	TokenFrom    string
	tokenProblem error // why a file has no token
	// ModelScope is ModelScope's endpoint; "" = https://www.modelscope.cn. ModelScopeToken is for it.
	ModelScope, ModelScopeToken string

	Cache string // folder of huggingface_hub's cache; "" = none
	// Verified is the folder where it is remembered which files of the cache have the bytes that their names say; "" =
	// nowhere. See package verified.
	Verified string

	Offline bool // use the cache only
	Keep    bool // store what is read in the cache, in whole files
	// Verify reads every byte of each file with weights, so that its SHA-256 can be checked. Otherwise it is checked where
	// every byte is read anyway.
	Verify bool

	// Strict makes an error of what is a notice otherwise: a token that is refused for a public repository, a file of the
	// cache that is damaged.
	Strict bool

	Memory    int64                                      // for what is read ahead, in bytes; 0 = 64 MiB
	Attempts  int                                        // without progress; 0 = those of Setting, else 10
	Stall     time.Duration                              // without data; 0 = that of Setting, else it grows
	Setting   func(host string) settings.Host            // how an endpoint is used; nil = as by default
	Sleep     func(context.Context, time.Duration) error // before a retry; nil = wait. For tests.
	Notice    func(text string)                          // called with what a user should know; nil = nobody is told
	Transport *http.Transport                            // nil = the package's own, with the proxies of the environment
	UserAgent string                                     // "" = ingot
}

// Environment returns the options that huggingface_hub takes from the environment: HF_ENDPOINT, HF_TOKEN and the file
// of a token, HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT, and the folder of the cache. getenv is usually [os.Getenv]. See
// https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables.
func Environment(getenv func(string) string) (Options, error) {
	o := Options{
		Endpoint:        trimEndpoint(getenv("HF_ENDPOINT")),
		Offline:         isTrue(getenv("HF_HUB_OFFLINE")) || isTrue(getenv("TRANSFORMERS_OFFLINE")),
		ModelScope:      trimEndpoint(getenv("MODELSCOPE_ENDPOINT")),
		ModelScopeToken: getenv("MODELSCOPE_API_TOKEN"),
	}
	home := getenv("HF_HOME")
	if home == "" {
		base := getenv("XDG_CACHE_HOME")
		if user := cmp.Or(getenv("HOME"), getenv("USERPROFILE")); base == "" && user != "" {
			base = filepath.Join(user, ".cache")
		}
		if base != "" {
			home = filepath.Join(base, "huggingface")
		}
	}
	o.Cache = cmp.Or(getenv("HF_HUB_CACHE"), getenv("HUGGINGFACE_HUB_CACHE"))
	if o.Cache == "" && home != "" {
		o.Cache = filepath.Join(home, "hub")
	}
	for _, e := range []struct{ variable, address string }{
		{"HF_ENDPOINT", o.Endpoint}, {"MODELSCOPE_ENDPOINT", o.ModelScope},
	} {
		if u, err := url.Parse(e.address); e.address != "" &&
			(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil) {
			return o, fmt.Errorf("%s: %q is not an http or https address, such as %s", e.variable, redact.Clip(e.address),
				defaultEndpoint)
		}
	}
	if text := getenv("HF_HUB_DOWNLOAD_TIMEOUT"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 1 || seconds > 3600 {
			return o, fmt.Errorf("HF_HUB_DOWNLOAD_TIMEOUT: %q is not a number of seconds from 1 to 3600", redact.Clip(text))
		}
		o.Stall = time.Duration(seconds) * time.Second
	}
	return o, o.findToken(getenv, home)
}

// trimEndpoint returns an address to which a path can be added.
func trimEndpoint(address string) string { return strings.TrimRight(address, "/") }

func isTrue(s string) bool {
	switch strings.ToUpper(s) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}
