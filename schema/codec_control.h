// Private to the codec: control messages, spread over codec_call.cpp (what workers say), codec_slice.cpp (what they are
// told to do) and codec_message.cpp (the envelope and the rest). Rules as in codec_wire.h.
#pragma once

#include "control.capnp.h"
#include "schema/codec_columns.h"

namespace vckpt::wire {

void write(Error::Builder builder, const vckpt::Error& error);
vckpt::Error read(Error::Reader reader);

void write(Join::Builder builder, const vckpt::Join& join);
vckpt::Join read(Join::Reader reader);
void write(SaveCall::Builder builder, const vckpt::SaveCall& call);
vckpt::SaveCall read(SaveCall::Reader reader);
void write(LoadCall::Builder builder, const vckpt::LoadCall& call);
vckpt::LoadCall read(LoadCall::Reader reader);
void write(Bodies::Builder builder, const vckpt::Bodies& bodies);
vckpt::Bodies read(Bodies::Reader reader);
void write(Progress::Builder builder, const vckpt::Progress& progress);
vckpt::Progress read(Progress::Reader reader);
void write(Receipt::Builder builder, const vckpt::Receipt& receipt);
vckpt::Receipt read(Receipt::Reader reader);
void write(LoadReceipt::Builder builder, const vckpt::LoadReceipt& receipt);
vckpt::LoadReceipt read(LoadReceipt::Reader reader);
void write(Failed::Builder builder, const vckpt::Failed& failed);
vckpt::Failed read(Failed::Reader reader);

void write(SaveSlice::Builder builder, const vckpt::SaveSlice& slice);
vckpt::SaveSlice read(SaveSlice::Reader reader);
void write(LoadSlice::Builder builder, const vckpt::LoadSlice& slice);
vckpt::LoadSlice read(LoadSlice::Reader reader);

}  // namespace vckpt::wire
