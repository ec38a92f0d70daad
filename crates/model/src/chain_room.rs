/// The room that a chain of frames needs: a commit that is more than one frame. All of it is there
/// before the first of them is appended, or none of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainRoom {
    /// Bytes of all frames.
    pub bytes: u64,
    /// How many frames there may be.
    pub frames: u64,
    /// Bytes of the largest of them.
    pub frame_bytes: usize,
    /// Bytes that a snapshot may take more, once they are there.
    pub snapshot_bytes: u64,
}
