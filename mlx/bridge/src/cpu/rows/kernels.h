// The table of row kernels for the instruction set of the unit that includes it.
#pragma once

#include "cpu/rows/act.h"
#include "cpu/rows/norm.h"
#include "cpu/rows/pick.h"
#include "cpu/rows/rope.h"
#include "cpu/rows/streams.h"
#include "cpu/rows/table.h"

#define IG_TYPES(f) \
  { f<float>, f<f16>, f<bf16> }
#define IG_ACT(a) \
  { activate<a, float>, activate<a, f16>, activate<a, bf16> }

#define IG_ROW_KERNELS                                                                                        \
  {                                                                                                           \
    IG_TYPES(rms_norm), IG_TYPES(layer_norm),                                                                 \
        {IG_ACT(Act::sigmoid),   IG_ACT(Act::silu), IG_ACT(Act::gelu),  IG_ACT(Act::gelu_tanh),               \
         IG_ACT(Act::cap),       IG_ACT(Act::relu2), IG_ACT(Act::clip), IG_ACT(Act::exp_tail)},               \
        IG_TYPES(clamped_gate), IG_TYPES(add), IG_TYPES(multiply), IG_TYPES(scale), IG_TYPES(mix),            \
        IG_TYPES(rescale), IG_TYPES(sparse), IG_TYPES(blend), IG_TYPES(softmax),                              \
        IG_TYPES(exp_sum), angles, IG_TYPES(rotate), IG_TYPES(largest), IG_TYPES(block_peaks),                \
        IG_TYPES(not_below), IG_TYPES(unpack)                                                                 \
  }
