// Memory that ends, or begins, at a page that nobody may touch. A kernel that reads past a mapped file faults there.
// The address sanitizer sees neither inline assembly nor what lies beyond its redzones.
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

// Where Exact takes its memory from: the heap, right after a guard page, or right before one.
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

// Mappings that are not in use, by their size without the two guard pages. Only the main thread takes and gives.
inline std::vector<char*>& free_pages(size_t room) {
  static std::map<size_t, std::vector<char*>> pools;
  return pools[room];
}

// Zeroed memory that touches the guard page at its start or its end. The rest of its pages is 0xff: NaN as floats.
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

// What the message of a fault names.
inline std::string& now_running() {
  static std::string name;
  return name;
}

// Names the case in which a fault happens, and leaves the fault to the handler before it: the sanitizer's or the
// system's.
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
    sigaction(s, &before[s == SIGBUS], nullptr);  // and the instruction runs again
  };
  for (int i = 0; i < 2; i++) {
    sigaction(signals[i], &act, &before[i]);
  }
}

}  // namespace check
