// Memory that starts or ends at a guard page, where an out-of-bounds access faults. The address sanitizer sees neither
// inline assembly nor accesses beyond its redzones.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace check {

// The memory of Exact: on the heap, right after a guard page, or right before one.
enum class Place { heap, start, end };

inline Place& place() {
  static Place p = Place::heap;
  return p;
}

inline size_t page_size() {
  static const size_t n = size_t(sysconf(_SC_PAGESIZE));
  return n;
}
inline size_t whole_pages(size_t bytes) {
  const size_t page = page_size();
  return bytes == 0 ? page : (bytes + page - 1) / page * page;
}

// Unused mappings by size, without their two guard pages. Only for the main thread.
inline std::vector<char*>& free_pages(size_t room) {
  static std::map<size_t, std::vector<char*>> pools;
  return pools[room];
}

// Returns zeroed memory that starts or ends at a guard page. The rest of its pages is 0xff, NaN as floats.
inline char* take_pages(size_t bytes, Place p) {
  const size_t page = page_size(), room = whole_pages(bytes);
  auto& pool = free_pages(room);
  if (pool.empty()) {
    void* all = mmap(nullptr, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(static_cast<char*>(all) + page, room, PROT_READ | PROT_WRITE) != 0) {
      std::perror("guard pages");
      std::exit(1);
    }
    pool.push_back(static_cast<char*>(all) + page);
  }
  char* base = pool.back();
  pool.pop_back();
  char* data = p == Place::start ? base : base + (room - bytes);
  std::memset(base, 0xff, room);
  std::memset(data, 0, bytes);
  return data;
}

inline void give_pages(char* data, size_t bytes, Place p) {
  const size_t room = whole_pages(bytes);
  free_pages(room).push_back(p == Place::start ? data : data - (room - bytes));
}

// The name of the current case, for messages about faults.
inline std::string& now_running() {
  static std::string name;
  return name;
}

// Installs handlers that print the current case on a fault, and then leave it to the previous handler (the sanitizer's
// or the system's).
inline void tell_faults() {
  static struct sigaction before[2];
  const int signals[] = {SIGSEGV, SIGBUS};
  struct sigaction act = {};
  act.sa_handler = [](int s) {
    const std::string& name = now_running();
    for (const char* text : {"FAIL fault in ", name.c_str(), "\n"}) {
      if (write(STDERR_FILENO, text, std::strlen(text)) < 0) {
        break;
      }
    }
    sigaction(s, &before[s == SIGBUS], nullptr);  // then the instruction runs again
  };
  for (int i = 0; i < 2; i++) {
    sigaction(signals[i], &act, &before[i]);
  }
}

}  // namespace check
