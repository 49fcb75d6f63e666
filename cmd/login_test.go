package cmd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/rogpeppe/go-internal/testscript"
)

// authRegistry starts a registry in memory that accepts user ann with the password secret, and puts its host into
// $AUTH_REGISTRY. With "tls" its certificate is untrusted.
func authRegistry(ts *testscript.TestScript, _ bool, args []string) {
	inner := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	ts.Defer(func() { inner.Close() })
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Warning", `299 - "this registry closes soon"`)
		if user, password, _ := req.BasicAuth(); user != "ann" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"errors":[{"code":"UNAUTHORIZED","message":"%s is not the password"}]}`, password)
			return
		}
		inner.ServeHTTP(w, req)
	}))
	if len(args) > 0 {
		s.StartTLS()
	} else {
		s.Start()
	}
	ts.Defer(s.Close)
	u, err := url.Parse(s.URL)
	ts.Check(err)
	ts.Setenv("AUTH_REGISTRY", u.Host)
}

// credentialHelper is a docker credential helper that keeps the credentials of one server in the file kept in
// $HELPER_DIR.
func credentialHelper() {
	file := filepath.Join(os.Getenv("HELPER_DIR"), "kept")
	in, err := io.ReadAll(os.Stdin)
	if err == nil && os.Args[1] == "store" {
		err = os.WriteFile(file, in, 0o600)
	} else if err == nil {
		var c struct{ ServerURL string }
		kept, _ := os.ReadFile(file)
		switch json.Unmarshal(kept, &c); {
		case c.ServerURL != strings.TrimSpace(string(in)):
			err = errors.New("credentials not found in native keychain")
		case os.Args[1] == "erase":
			err = os.Remove(file)
		default:
			os.Stdout.Write(kept)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
