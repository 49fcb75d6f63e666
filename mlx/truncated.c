//go:build cgo && (linux || darwin)

// Reading a truncated part of a mapped file kills the process with SIGBUS. This handler prints one line that names the
// file, instead of Go's long stack trace. It passes any other SIGBUS to the previous handler, Go's.

#include "truncated.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct watched {
  struct watched* next;
  long long size;
  char path[];
};

static struct watched* files;  // nodes are only prepended, so the handler can read it at any time
static int reported;
static struct sigaction before;
static char* line_begin;  // set before the handler is installed

static void print(const char* text, size_t n) {
  while (n > 0) {
    ssize_t done = write(STDERR_FILENO, text, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return;
    text += done;
    n -= (size_t)done;
  }
}

struct line {
  char text[1024 + 256];
  size_t n;
};

static void add(struct line* l, const char* text) {
  size_t n = strlen(text);
  if (n > sizeof(l->text) - l->n) n = sizeof(l->text) - l->n;
  memcpy(l->text + l->n, text, n);
  l->n += n;
}

static void add_number(struct line* l, long long value) {
  char digits[24];
  char* p = digits + sizeof(digits);
  *--p = 0;
  do {
    *--p = (char)('0' + value % 10);
    value /= 10;
  } while (value > 0);
  add(l, p);
}

// Calls only async-signal-safe functions.
static void on_bus(int signal_number, siginfo_t* info, void* context) {
  int saved = errno;
  for (struct watched* w = __atomic_load_n(&files, __ATOMIC_ACQUIRE); w; w = w->next) {
    struct stat st;
    if (stat(w->path, &st) != 0 || st.st_size >= w->size) continue;
    if (__atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED)) {
      for (;;) pause();  // another thread reports it and ends the process
    }
    struct line l = {.n = 0};
    add(&l, line_begin);
    add(&l, w->path);
    add(&l, " has ");
    add_number(&l, st.st_size);
    add(&l, " of ");
    add_number(&l, w->size);
    add(&l, " bytes; `ingot fsck --repair` repairs the store\n");
    print(l.text, l.n);
    _exit(1);
  }
  errno = saved;
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal_number, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    signal(SIGBUS, SIG_DFL);  // the faulting instruction runs again and ends the process
  } else {
    before.sa_handler(signal_number);
  }
}

int ig_truncated_install(const char* begin) {
  if (line_begin) return 0;
  line_begin = strdup(begin);
  if (!line_begin) return ENOMEM;
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = on_bus;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;  // required by Go's runtime
  sigfillset(&action.sa_mask);
  return sigaction(SIGBUS, &action, &before) == 0 ? 0 : errno;
}

int ig_truncated_watch(const char* path, long long size) {
  size_t n = strlen(path) + 1;
  struct watched* w = malloc(sizeof(*w) + n);
  if (!w) return ENOMEM;
  w->size = size;
  memcpy(w->path, path, n);
  w->next = __atomic_load_n(&files, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&files, &w->next, w, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
  return 0;
}
