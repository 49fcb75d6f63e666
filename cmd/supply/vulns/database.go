package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// The vulnerability database, a pseudo-version of its module, and the module's sum as in go.sum.
// `go list -m golang.org/x/vulndb@latest` names the newest, `go mod download -json golang.org/x/vulndb@VERSION` its
// sum.
const (
	databaseModule  = "golang.org/x/vulndb"
	databaseVersion = "v0.0.0-20261105234957-e22db6528018"
	databaseSum     = "h1:mfngRv0Yoh0VApsXKEN82CjD99kl7mtparN3bs3JnqI="
)

// oldDatabase is the age from which a note asks for a newer one.
const oldDatabase = 60 * 24 * time.Hour

// database is the address of the database's files in the module cache. Its module has them flat, as one file for each
// vulnerability; govulncheck makes the index itself (newHybridSource in golang.org/x/vuln/internal/client).
func database(ctx context.Context) (string, error) {
	out, err := command(ctx, nil, "mod", "download", "-json", databaseModule+"@"+databaseVersion)
	var module struct{ Dir, Sum, Error string }
	if e := json.Unmarshal(out, &module); err == nil {
		err = e
	}
	if err != nil {
		return "", fmt.Errorf("vulnerability database: %w; INGOT_VULNDB=https://vuln.go.dev asks it online", err)
	}
	if module.Sum != databaseSum {
		return "", fmt.Errorf("vulnerability database: the module proxy has %s@%s with the sum %s, want %s",
			databaseModule, databaseVersion, module.Sum, databaseSum)
	}
	path := filepath.ToSlash(filepath.Join(module.Dir, "data", "osv"))
	if !strings.HasPrefix(path, "/") { // C:/...
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String(), nil
}

// ageNote says that a database is old, or nothing.
func ageNote(version string, now time.Time) string {
	_, stamp, _ := strings.Cut(version, "-")
	stamp, _, _ = strings.Cut(stamp, "-")
	made, err := time.Parse("20060102150405", stamp)
	if err != nil {
		return fmt.Sprintf("the age of the vulnerability database %s is not known", version)
	}
	if age := now.Sub(made); age > oldDatabase {
		return fmt.Sprintf("the vulnerability database is %d days old: "+
			"cmd/supply/vulns/database.go says how to take a newer one", int(age.Hours()/24))
	}
	return ""
}
