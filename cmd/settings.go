package cmd

import (
	"fmt"
	"time"

	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/settings"
	"github.com/spf13/pflag"
)

// settingFlags are flags that the configuration file has too, for one host or all. The flags are for all hosts.
type settingFlags struct{ timeout, retries, concurrency, chunkSize string }

// addWait adds the flags of commands that use a registry or a hub.
func (f *settingFlags) addWait(to *pflag.FlagSet) {
	to.StringVar(&f.timeout, "timeout", "", "`duration` that a connection may stand still (default grows)")
	to.StringVar(&f.retries, "retries", "",
		fmt.Sprintf("`number` of retries in a row without progress (default %d)", remote.DefaultAttempts-1))
}

// addTransfer adds the flag of commands that transfer blobs.
func (f *settingFlags) addTransfer(to *pflag.FlagSet) {
	to.StringVar(&f.concurrency, "concurrency", "",
		fmt.Sprintf("`number` of parallel blob transfers (default %d)", registry.DefaultConcurrency))
}

// addUpload adds the flag of commands that upload blobs.
func (f *settingFlags) addUpload(to *pflag.FlagSet) {
	to.StringVar(&f.chunkSize, "chunk-size", "",
		fmt.Sprintf("`size` of upload chunks of large tensors (default %dMiB)", registry.DefaultChunkSize>>20))
}

// given returns what the flags say.
func (f *settingFlags) given() (own settings.Host, err error) {
	for _, flag := range []struct {
		name, value string
		set         func(string) error
	}{
		{"timeout", f.timeout, own.SetTimeout}, {"retries", f.retries, own.SetRetries},
		{"concurrency", f.concurrency, own.SetConcurrency}, {"chunk-size", f.chunkSize, own.SetChunkSize},
	} {
		if flag.value == "" {
			continue
		}
		if err := flag.set(flag.value); err != nil {
			return own, usagef("--%s: %v", flag.name, err)
		}
	}
	return own, nil
}

// setting returns how each host is used: as the flags say, else as the configuration file does.
func (f *settingFlags) setting() (func(host string) settings.Host, error) {
	own, err := f.given()
	if err != nil {
		return nil, err
	}
	file, err := settings.Load()
	if err != nil {
		return nil, usagef("%v", err)
	}
	return func(host string) settings.Host { return own.Over(file.Host(host)) }, nil
}

// noticeWait is a wait that a user should know about.
const noticeWait = 5 * time.Second

// paused says how long nothing is sent to a registry that limits requests.
func paused(wait time.Duration) string {
	return fmt.Sprintf("waiting %s: the registry limits requests", wait.Round(time.Second))
}
