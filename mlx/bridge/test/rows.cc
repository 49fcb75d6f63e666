// Runs the kernels of rows, recurrent layers and attention on all instruction sets of this processor, with their memory
// next to guard pages and sizes around those of vectors. The Go tests of package mlx check the values.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpu/isa.h"
#include "cpu/attention/attention.h"
#include "cpu/delta/delta.h"
#include "cpu/rows/rows.h"
#include "cpu/team/team.h"
#include "check.h"

using namespace ingot::cpu;
using check::Exact;

namespace {

int64_t cases = 0;

const char* kTypes[] = {"f32", "f16", "bf16"};
const int64_t kSizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130};

template <class Case>
void run(const char* kernel, Type t, int64_t n, Case one) {
  auto name = std::string(name_of(isa())) + " " + kernel + " " + kTypes[int(t)] + " of " + std::to_string(n);
  check::in_all_places(name, one);
  cases++;
}

size_t size_of(Type t) { return t == Type::f32 ? 4 : 2; }

// Returns 256 normally distributed numbers of the given type.
const uint8_t* numbers(Type t) {
  static const std::vector<std::vector<uint8_t>> all = [] {
    std::vector<std::vector<uint8_t>> of;
    for (Type each : {Type::f32, Type::f16, Type::bf16}) {
      of.emplace_back(256 * size_of(each));
      for (size_t i = 0; i < 256; i++) {
        void* to = of.back().data() + i * size_of(each);
        double v = check::normal();
        each == Type::f32   ? check::put(static_cast<float*>(to), v)
        : each == Type::f16 ? check::put(static_cast<f16*>(to), v)
                            : check::put(static_cast<bf16*>(to), v);
      }
    }
    return of;
  }();
  return all[size_t(t)].data();
}

// Elements of a type, random or zero.
struct Elements {
  Exact<uint8_t> bytes;

  Elements(Type t, int64_t n, bool random = true) : bytes(size_t(n) * size_of(t)) {
    const uint8_t* from = numbers(t);
    const size_t size = size_of(t);
    uint64_t at = random ? check::random()() | 1 : 0;
    for (int64_t i = 0; random && i < n; i++, at = at * 6364136223846793005u + 1) {
      std::memcpy(data() + size_t(i) * size, from + (at >> 56) * size, size);
    }
  }
  uint8_t* data() const { return bytes.data(); }
  float* floats() const { return reinterpret_cast<float*>(bytes.data()); }
};

void norms(const RowKernels& k, Type t, int64_t n) {
  for (int form = 0; form < 8; form++) {  // bits: residual, float32 weights, bias
    run("norm", t, n, [&] {
      const bool f32 = form & 2;
      Elements x(t, n), residual(t, n), sum(t, n, false), weight(f32 ? Type::f32 : t, n), bias(t, n), out(t, n, false);
      Norm a{x.data(), form & 1 ? residual.data() : nullptr, sum.data(), form == 4 ? nullptr : weight.data(), f32, 0.5f,
             nullptr, 1e-5f, out.data(), n};
      k.rms_norm[int(t)](a);
      check::note(out.bytes);
      check::note(sum.bytes);
      a.residual = nullptr;
      a.bias = form & 4 ? bias.data() : nullptr;
      k.layer_norm[int(t)](a);
      check::note(out.bytes);
    });
  }
}

void elementwise(const RowKernels& k, Type t, int64_t n) {
  run("elementwise", t, n, [&] {
    Elements a(t, n), b(t, n), out(t, n, false);
    Exact<float> work(static_cast<size_t>(n));
    float peak = 0, sum = 0;
    for (int act = 0; act < kActs; act++) {
      for (const void* up : {static_cast<const void*>(nullptr), static_cast<const void*>(b.data())}) {
        k.activate[act][int(t)](a.data(), up, out.data(), n, 3);
        check::note(out.bytes);
      }
    }
    for (const void* bias : {static_cast<const void*>(nullptr), static_cast<const void*>(b.data())}) {
      k.clamped_gate[int(t)]({.gate = a.data(), .up = b.data(), .gate_bias = bias, .up_bias = bias ? a.data() : nullptr,
                              .out = out.data(), .n = n, .alpha = 1.702f, .limit = 1, .shift = 1});
      check::note(out.bytes);
    }
    k.add[int(t)](a.data(), b.data(), out.data(), n);
    check::note(out.bytes);
    k.multiply[int(t)](a.data(), b.data(), out.data(), n);
    check::note(out.bytes);
    k.scale[int(t)](a.data(), 0.3f, out.data(), n);
    check::note(out.bytes);
    k.rescale[int(t)](a.data(), b.data(), out.data(), n, 1e-5f);
    check::note(out.bytes);
    k.sparse[int(t)](a.data(), out.data(), n, 0.5f);
    check::note(out.bytes);
    k.blend[int(t)](a.data(), b.data(), b.data(), out.data(), n);
    check::note(out.bytes);
    Elements several(t, 3 * n), weights(Type::f32, 3);
    for (const void* added : {static_cast<const void*>(nullptr), static_cast<const void*>(b.data())}) {
      k.mix[int(t)]({several.data(), 3, weights.floats(), added, 0.5f, out.data(), n});
      check::note(out.bytes);
    }
    k.softmax[int(t)](a.data(), out.data(), n, work.data());
    check::note(out.bytes);
    k.exp_sum[int(t)](a.data(), n, &peak, &sum);
    check::note(&peak, sizeof peak);
    check::note(&sum, sizeof sum);
  });
}

void rotation(const RowKernels& k, Type t, int64_t n) {
  for (int64_t half : {n / 2, (n + 2) / 4}) {
    for (bool traditional : {false, true}) {
      run("rotate", t, n, [&] {
        Elements x(t, n), out(t, n, false), freqs(Type::f32, half), positions(Type::f32, half);
        Elements cos(Type::f32, half, false), sin(Type::f32, half, false);
        k.angles(freqs.floats(), positions.floats(), half, 1, cos.floats(), sin.floats());
        k.rotate[int(t)](x.data(), out.data(), n, half, traditional, cos.floats(), sin.floats());
        check::note(out.bytes);
      });
    }
  }
}

void picks(const RowKernels& k, Type t, int64_t n) {
  for (int64_t block : {int64_t(1), int64_t(9), int64_t(32), n}) {
    run("pick", t, n, [&] {
      Elements x(t, n);
      Exact<float> peaks(size_t((n + block - 1) / block)), values(static_cast<size_t>(n));
      Exact<int32_t> ids(static_cast<size_t>(n));
      float value = 0;
      int64_t at = k.largest[int(t)](x.data(), n, &value);
      check::note(&at, sizeof at);
      check::note(&value, sizeof value);
      k.block_peaks[int(t)](x.data(), n, block, peaks.data());
      check::note(peaks);
      int64_t found = k.not_below[int(t)](x.data(), n, block == 1 ? -100.0f : 0.0f, 3, values.data(), ids.data());
      check::note(&found, sizeof found);
      check::note(values);
      check::note(ids);
    });
  }
}

void tables(const RowKernels& k, Type t) {
  struct Table {
    Packing packing;
    int bits, group;
  };
  std::vector<Table> all = {{Packing::mxfp4, 4, 32}, {Packing::mxfp8, 8, 32}, {Packing::nvfp4, 4, 16}};
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) {
      all.push_back({Packing::affine, bits, group});
    }
  }
  for (const Table& f : all) {
    for (int64_t groups : {1, 2, 5}) {
      run("table", t, groups * f.group, [&] {
        const int64_t n = groups * f.group;
        Exact<uint8_t> codes(size_t(n * f.bits / 8)), small(static_cast<size_t>(groups));
        for (size_t i = 0; i < codes.size(); i++) {
          codes[i] = uint8_t(check::below(127));
        }
        for (size_t i = 0; i < small.size(); i++) {
          small[i] = uint8_t(60 + check::below(60));
        }
        Elements scales(t, groups), biases(t, groups), out(t, n, false);
        const void* of = f.packing == Packing::affine ? scales.data() : small.data();
        const float multiplier = groups == 2 ? 1 : 3;
        k.unpack[int(t)]({f.packing, f.bits, f.group, codes.data(), of, biases.data(), multiplier, out.data(), n});
        check::note(out.bytes);
      });
    }
  }
}

void recurrent(const DeltaKernels& k, Type t, int64_t n) {
  const int64_t rows = n % 3 == 0 ? 18 : 1 + n % 4, channels = 1 + n % 7;
  const Type f32 = Type::f32;
  for (bool all : {false, true}) {  // keep the state of every row
    run("delta", t, n, [&] {
      Elements q(t, rows * n), key(t, rows * n), v(t, rows * channels), y(t, rows * channels, false);
      Elements gate(Type::f32, rows), beta(Type::f32, rows), from(Type::f32, channels * n);
      Elements to(f32, (all ? rows : 1) * channels * n, false), gates(f32, rows * n);
      Exact<float> work(size_t(2 * kDeltaRows * n)), more(size_t(3 * kDeltaRows * n));
      for (int64_t i = 0; i < rows * n; i++) {
        gate.floats()[i / n] = beta.floats()[i / n] = gates.floats()[i] = 0.01f;
      }
      Delta d{rows, n, 0, channels, q.data(), key.data(), v.data(), n, channels, gate.floats(), beta.floats(), 1,
              all ? nullptr : from.floats(), to.floats(), all ? channels * n : 0, y.data(), -1, 1};
      k.delta[int(t)](d, work.data());
      check::note(y.bytes);
      d.gate = gates.floats();
      k.column_delta[int(t)](d, more.data());
      check::note(y.bytes);
      check::note(to.bytes);
      d.gate = nullptr;
      k.scan[int(t)](d, work.data());
      check::note(y.bytes);
      check::note(to.bytes);
    });
  }
  run("channels", t, n, [&] {
    Elements x(f32, rows * channels), step(f32, rows * channels), b(f32, rows * n), c(f32, rows * n);
    Elements rate(f32, channels * n), skip(f32, channels), from(f32, channels * n);
    Elements to(f32, channels * n, false), y(f32, rows * channels, false);
    Exact<float> work(size_t(kChannelWork * n));
    k.channels({rows, channels, n, channels, x.floats(), step.floats(), b.floats(), c.floats(), rate.floats(),
                n % 2 ? skip.floats() : nullptr, from.floats(), to.floats(), y.floats()}, work.data());
    check::note(y.bytes);
    check::note(to.bytes);
  });
  run("gates", t, n, [&] {
    Elements x(t, n), input(t, n), decay(t, n), soft(f32, n), parts(f32, 3 * n);
    Elements out(f32, n, false), gate(f32, n, false);
    const float* p = parts.floats();
    k.softplus({soft.floats(), p, n % 2 ? p + n : nullptr, 0.1f, 2.0f, soft.floats(), n});
    k.unit_gates[int(t)]({x.data(), input.data(), decay.data(), p, p + n, p + 2 * n, n % 3 == 0, out.floats(),
                          gate.floats(), n});
    check::note(soft.bytes);
    check::note(out.bytes);
    check::note(gate.bytes);
  });
  run("wkv", t, n, [&] {
    Elements r(t, rows * n), w(t, rows * n), key(t, rows * n), v(t, rows * n), a(t, rows * n), y(t, rows * n, false);
    Elements parts(f32, 5 * n), from(f32, n * n), to(f32, n * n, false);
    Exact<float> work(size_t(kWkvWork * n));
    const float* p = parts.floats();
    k.wkv[int(t)]({rows, n, n, r.data(), w.data(), key.data(), v.data(), a.data(), p, p + n, p + 2 * n, p + 3 * n,
                   p + 4 * n, 1e-3f, from.floats(), to.floats(), y.data()}, work.data());
    check::note(y.bytes);
    check::note(to.bytes);
  });
  for (int taps : {1, 4, kConvTaps}) {
    run("conv", t, n, [&] {
      std::vector<std::unique_ptr<Elements>> rows_of;
      Elements weight(t, taps * n), bias(t, n), out(t, n, false);
      Conv c{{}, taps, weight.data(), n, taps == 1 ? nullptr : bias.data(), taps == 4, out.data(), n};
      for (int i = 0; i < taps; i++) {
        rows_of.push_back(std::make_unique<Elements>(t, n));
        c.taps[i] = rows_of.back()->data();
      }
      k.conv[int(t)](c);
      check::note(out.bytes);
    });
  }
}

// Attention of one sequence whose keys are in two runs.
void attends(Type q_type, Type kv_type, int bits, int dim, int value_dim, int heads, int kv_heads, int64_t rows,
             int64_t keys, int mask) {
  auto name = "attention, " + std::to_string(rows) + " rows, " + std::to_string(keys) + " keys of " +
              kTypes[int(kv_type)] + ", " + std::to_string(bits) + " bits, q of";
  run(name.c_str(), q_type, dim, [&] {
    AttentionShape s{q_type, kv_type, heads, kv_heads, dim, value_dim, 0.1f};
    s.bits = bits;
    s.fast = mask == 1;
    s.softcap = mask == 2 ? 20 : 0;
    Elements q(q_type, rows * heads * dim), out(q_type, rows * heads * value_dim, false), sinks(Type::f32, heads);
    Exact<float> added(mask == 1 ? size_t(rows * keys) : 0);
    Exact<uint8_t> seen(mask == 2 ? size_t(rows * keys) : 0);
    for (size_t i = 0; i < added.size(); i++) {
      added[i] = float(check::normal());
    }
    for (size_t i = 0; i < seen.size(); i++) {
      seen[i] = uint8_t(check::below(4) != 0);
    }
    AttentionRows r{};
    r.q = q.data();
    r.out = out.data();
    r.q_head = dim;
    r.q_row = heads * dim;
    r.out_head = value_dim;
    r.out_row = heads * value_dim;
    r.position = keys - rows;
    r.count = rows;
    r.mask = mask == 1   ? AttentionMask{added.data(), true, 0, keys, 1}
             : mask == 2 ? AttentionMask{seen.data(), false, 0, keys, 1}
                         : AttentionMask{};
    std::vector<std::unique_ptr<Elements>> plain;
    std::vector<std::unique_ptr<Exact<uint8_t>>> packed;
    auto lay = [&](int64_t count, int d) -> const void* {
      plain.push_back(std::make_unique<Elements>(kv_type, kv_heads * count * d));
      if (bits == 0) {
        return plain.back()->data();
      }
      packed.push_back(std::make_unique<Exact<uint8_t>>(size_t(kv_heads * count * packed_bytes(d, bits))));
      pack_rows(kv_type, plain.back()->data(), kv_heads * count, d, bits, packed.back()->data());
      check::note(*packed.back());
      return packed.back()->data();
    };
    const int64_t k_row = bits ? packed_bytes(dim, bits) : dim;
    const int64_t v_row = bits ? packed_bytes(value_dim, bits) : value_dim;
    for (int64_t begin = 0; begin < keys;) {
      int64_t count = begin == 0 && keys > 2 ? keys / 3 : keys - begin;
      const void* k = lay(count, dim);
      r.runs.push_back({k, lay(count, value_dim), count * k_row, k_row, count * v_row, v_row, begin, count});
      begin += count;
    }
    attention(s, {r}, mask == 0 ? sinks.floats() : nullptr);
    check::note(out.bytes);
  });
}

void attention_cases() {
  int variant = 0;
  for (int dim : {4, 20, 32, 36, 64, 68, 96, 128}) {
    for (int64_t rows : {1, 3, 19}) {
      for (int64_t keys : {19, 65, 131, 300}) {
        for (int bits : {0, 4, 8}) {
          for (int t = 0; t < 3; t++) {
            variant++;
            attends(Type(t), Type((t + variant) % 3), bits, dim, variant % 2 ? dim : (dim + 7) / 8 * 4,
                    variant % 3 == 0 ? 6 : 2, variant % 5 ? 2 : 1, rows, keys, variant % 4);
          }
        }
      }
    }
  }
}

// Rows of an indexer choose positions of one sequence, and queries attend to them.
void sparse_cases() {
  for (int dim : {1, 4, 20, 64}) {
    for (int heads : {1, 3, 16, 33}) {
      for (int64_t keys : {7, 131, 300}) {
        for (int t = 0; t < 3; t++) {
          run("sparse attention", Type(t), dim * heads, [&] {
            const int rows = 3, budget = 9;
            Elements q(Type::f32, rows * heads * dim), weights(Type::f32, rows * heads), stored(Type(t), keys * dim);
            Exact<int32_t> chosen(size_t(rows * budget));
            const int rate = heads > 16 ? 4 : 1;
            choose_keys({{q.floats(), weights.floats(), stored.data(), dim, Type(t), heads, dim, budget, rate,
                               keys * rate - rows, rows, chosen.data()}});
            check::note(chosen);
            AttentionShape s{Type(t), Type(t), heads, 1, dim, (dim + 1) / 2, 0.3f};
            s.causal = false;
            Elements queries(Type(t), rows * heads * dim), out(Type(t), rows * heads * s.value_dim, false);
            const int64_t position = keys * rate - rows, window = std::min<int64_t>(keys, 20);
            const float* sinks = weights.floats();
            attend_chosen(s, {{queries.data(), out.data(), position, rows, stored.data(), chosen.data(), budget, rate,
                               nullptr, 0, 0}}, nullptr);
            check::note(out.bytes);
            attend_chosen(s, {{queries.data(), out.data(), position, rows, stored.data(), chosen.data(), budget, rate,
                               stored.data(), keys, window}}, sinks);
            check::note(out.bytes);
            attend_chosen(s, {{queries.data(), out.data(), position, rows, stored.data(), nullptr, 0, rate,
                               stored.data(), keys, window}}, sinks);
            check::note(out.bytes);
          });
        }
      }
    }
  }
}

}  // namespace

int main() {
  check::tell_faults();
  numbers(Type::f32);  // before a case sets the seed
  for (const char* name : {"portable", "avx2", "avx512", "avx512vbmi", "avx512bf16", "zen4", "neon"}) {
    try {
      set_isa(name);
    } catch (const std::invalid_argument& e) {
      std::printf("skipped: %s\n", e.what());
      continue;
    }
    for (int t = 0; t < 3; t++) {
      for (int64_t n : kSizes) {
        norms(row_kernels(), Type(t), n);
        elementwise(row_kernels(), Type(t), n);
        rotation(row_kernels(), Type(t), n);
        picks(row_kernels(), Type(t), n);
        recurrent(delta_kernels(), Type(t), n);
      }
      tables(row_kernels(), Type(t));
    }
    attention_cases();
    sparse_cases();
  }
  return check::exit_status("rows", cases);
}
