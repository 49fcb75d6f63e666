// Stress test of the thread team: each element is processed exactly once for all grains, callers, team sizes and
// failures, and an idle team takes no processor time. It also runs under the thread sanitizer.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cpu/team/team.h"
#include "check.h"

using ingot::cpu::parallel;
using ingot::cpu::Team;

namespace {

std::atomic<int64_t> cases{0};

template <class F>
void run(Team& team, int64_t n, int64_t grain, F&& f) {
  cases++;
  team.run(n, grain, [](void* c, int64_t begin, int64_t end) { (*static_cast<F*>(c))(begin, end); }, &f);
}

void expect(bool held, const char* what) {
  if (!held) {
    check::fail(what);
  }
}

// Counts in plain memory, so that a piece that runs twice at once, or is not waited for, is a data race.
void every_element_once(Team& team, int64_t n, int64_t grain) {
  std::vector<int> hits(static_cast<size_t>(n), 0);
  run(team, n, grain, [&](int64_t begin, int64_t end) {
    expect(begin % std::max<int64_t>(1, grain) == 0, "a piece does not begin at a multiple of the grain");
    expect(begin < end && end <= n, "a piece is empty or too long");
    for (int64_t i = begin; i < end; i++) {
      hits[size_t(i)]++;
    }
  });
  for (int h : hits) {
    expect(h == 1, "an element was not processed exactly once");
  }
}

void pieces(Team& team, int rounds) {
  for (int i = 0; i < rounds; i++) {
    every_element_once(team, check::below(200), check::below(20));
    if (i % 50 == 0) {
      usleep(5000);  // let the helpers go to sleep
    }
  }
}

// Two pieces that wait for each other need two threads.
void together(Team& team) {
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  run(team, 2, 1, [&](int64_t, int64_t) {
    inside++;
    for (int i = 0; i < 20000 && !met; i++) {
      met = met || inside == 2;
      usleep(100);
    }
  });
  expect(met, "two pieces that wait for each other did not run at the same time");
}

void nested(Team& team) {
  std::atomic<int64_t> sum{0};
  run(team, 40, 1, [&](int64_t begin, int64_t) {
    auto self = std::this_thread::get_id();
    run(team, 30, 7, [&](int64_t from, int64_t to) {
      expect(std::this_thread::get_id() == self, "a nested piece left its thread");
      sum += (to - from) * (begin + 1);
    });
  });
  expect(sum == 30 * 40 * 41 / 2, "nested runs lost pieces");
}

void failing(Team& team) {
  for (int at : {0, 1, 63, 99}) {
    bool caught = false;
    try {
      run(team, 100, 1, [&](int64_t begin, int64_t) {
        if (begin == at) {
          throw std::runtime_error("piece");
        }
      });
    } catch (const std::runtime_error&) {
      caught = true;
    }
    expect(caught, "a piece's exception was not rethrown");
    every_element_once(team, 50, 1);
  }
}

// Several threads use one team while another resizes it.
void callers(Team& team, int rounds) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; i++) {
        std::vector<int> hits(97, 0);
        auto f = [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; k++) {
            hits[size_t(k)]++;
          }
        };
        team.run(97, 1 + (i + t) % 9, [](void* c, int64_t b, int64_t e) { (*static_cast<decltype(f)*>(c))(b, e); }, &f);
        for (int h : hits) {
          expect(h == 1, "with two callers an element was not processed exactly once");
        }
      }
    });
  }
  for (int i = 0; i < rounds / 20; i++) {
    team.resize(1 + i % 4);
    expect(team.size() == 1 + i % 4, "the team has a wrong size");
    usleep(200);
  }
  for (auto& t : threads) {
    t.join();
  }
  cases += 2 * rounds;
}

// A caller without helpers, because another caller has them, runs its pieces alone. A helper that was stalled in a
// piece joins again later.
void stalled(Team& team) {
  std::atomic<bool> begun{false}, release{false};
  std::thread other([&] {
    run(team, 2, 1, [&](int64_t, int64_t) {
      begun = true;
      while (!release) {
        usleep(100);
      }
    });
  });
  while (!begun) {
    usleep(100);
  }
  every_element_once(team, 100, 3);
  release = true;
  other.join();
  run(team, 8, 1, [&, caller = std::this_thread::get_id()](int64_t, int64_t) {
    usleep(std::this_thread::get_id() == caller ? 100 : 5000);
  });
  every_element_once(team, 100, 3);
  usleep(50000);
  together(team);
}

// A helper that was excluded after a stall joins a run that started without it.
void back_within_a_run(Team& team) {
  const auto caller = std::this_thread::get_id();
  for (int round = 0; round < 3; round++) {
    std::atomic<bool> helped{false};
    run(team, 8, 1, [&](int64_t, int64_t) { usleep(std::this_thread::get_id() == caller ? 100 : 5000); });
    run(team, 1000, 1, [&](int64_t, int64_t) {
      helped = helped || std::this_thread::get_id() != caller;
      usleep(helped ? 10 : 500);
    });
    expect(helped, "an excluded helper did not join a later run");
  }
}

// Pieces that wait for earlier ones of the same run, one of which takes long. The helper that stalled joins again
// later.
void waiting(Team& team) {
  constexpr int64_t kHalf = 16;
  for (int round = 0; round < 40; round++) {
    std::atomic<int> made[kHalf] = {}, used{0};
    run(team, 2 * kHalf, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        if (i < kHalf) {
          usleep(round == 7 && i == kHalf - 1 ? 5000 : 1);
          made[i] = int(i) + 1;
          continue;
        }
        team.wait([&] { return made[i - kHalf] != 0; });
        used += made[i - kHalf];
      }
    });
    expect(used == kHalf * (kHalf + 1) / 2, "a piece did not wait for what it needs");
  }
  cases += 40;
  every_element_once(team, 100, 3);
  usleep(50000);
  together(team);
}

std::atomic<int> calls{0};

// Each thread makes a call exactly once: helpers that sleep, spin or were just started, between another caller's
// runs.
void each(Team& team) {
  thread_local int mine = 0;
  auto call = []() noexcept {
    calls++;
    mine++;
  };
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      every_element_once(team, 50, 7);
    }
  });
  calls = mine = 0;
  const int size = team.size();
  for (int i = 1; i <= 100; i++) {
    team.each(call);
    expect(calls == i * size && mine == i, "not every thread made the call once");
    if (i % 10 == 0) {
      usleep(5000);
      team.resize(size);
    }
  }
  stop = true;
  other.join();
  cases += 100;
}

// Sleeping helpers are not waited for: short runs are complete before they wake.
void short_runs(Team& team) {
  for (int i = 0; i < 200; i++) {
    every_element_once(team, 2, 1);
    if (i % 8 == 0) {
      usleep(5000);
    }
  }
}

double processor_seconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * double(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void idle(Team& team) {
  every_element_once(team, 1000, 1);
  usleep(100000);
  double before = processor_seconds();
  usleep(1000000);
  expect(processor_seconds() - before < 0.2, "an idle team takes processor time");
}

}  // namespace

int main() {
  for (int threads : {1, 2, 3, 8}) {
    Team team(threads);
    pieces(team, 1000);
    nested(team);
    failing(team);
    short_runs(team);
    each(team);
    if (threads > 1) {
      together(team);
      stalled(team);
      back_within_a_run(team);
      waiting(team);
    }
  }
  {
    Team team(4);
    callers(team, 2000);
    idle(team);
  }
  for (int i = 0; i < 50; i++) {  // start and stop, with and without work
    Team team(1 + i % 4);
    if (i % 3) {
      every_element_once(team, 20, 1);
    }
  }
  std::atomic<int64_t> sum{0};
  Team::instance().resize(3);
  parallel(1000, 10, [&](int64_t begin, int64_t end) { sum += end - begin; });
  expect(sum == 1000, "parallel lost pieces");
  Team::instance().resize(1);
  return check::exit_status("team", cases);
}
