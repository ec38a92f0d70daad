//! Mends a directory if its control file is lost or damaged, or tells of a later log than there is.
//! The content of the other files counts as all that there is, and frames known to be gone are
//! reported.

use model::Lsn;

use crate::control::{CONTROL_NAME, Control};
use crate::format::{DirectoryId, SegmentNumber};
use crate::recovery::read_surveyed;
use crate::survey::Survey;
use crate::{Disk, OpenError, Recover, Recovered};

/// The finding of a [`repair`].
#[derive(Clone, Debug)]
pub struct Repair {
    /// Why the directory is refused; `None`: it is sound, and nothing is to be repaired.
    pub fault: Option<OpenError>,
    /// The remains.
    pub recovered: Recovered,
    /// All frames up to here were on the device once, as far as the control file tells.
    pub synced: Lsn,
}

impl Repair {
    /// The first and the last frame that were on the device and are gone, as far as anything tells.
    #[must_use]
    pub fn lost(&self) -> Option<(Lsn, Lsn)> {
        (self.synced > self.recovered.last).then(|| (self.recovered.last.next(), self.synced))
    }
}

/// Reports why a directory is refused, and the loss of going on without the missing frames. If
/// `accept_loss`, writes the control file anew, from the content of all other files. From then on
/// the directory is as if the missing frames had never been. Else changes nothing.
///
/// # Errors
/// [`OpenError`]: more than the control file is at fault, and nothing was changed; or the disk
/// failed.
pub fn repair<D: Disk>(
    disk: &D,
    accept_loss: bool,
    recover: &mut impl Recover,
) -> Result<Repair, OpenError> {
    let mut survey = Survey::of(disk)?;
    let (fault, synced) = (survey.judge().err(), survey.control_or_none().synced);
    let rebuilt = fault.as_ref().map(|_| rebuilt(&survey, DirectoryId(disk.salt())));
    if let Some(control) = rebuilt {
        survey.replace_control(control);
        // Other faults are no matter of the control file.
        survey.judge()?;
    }
    let file = survey.control_file.clone();
    let recovered = read_surveyed(disk, survey, recover)?.recovered;
    if let Some(control) = rebuilt.filter(|_| accept_loss) {
        let file = file.map_or_else(|| disk.create(CONTROL_NAME), Ok)?;
        control.write(disk, &file)?;
        disk.sync_directory()?;
    }
    Ok(Repair { fault, recovered, synced })
}

/// A control file of no segment, as it is while the log goes on in none: the next start takes the
/// last note of any file.
fn rebuilt<F>(survey: &Survey<F>, unknown: DirectoryId) -> Control {
    let directory = survey.directory_of_others().or(survey.directory()).unwrap_or(unknown);
    let (epoch, stamp) = (survey.epoch(), survey.stamp());
    Control { epoch, directory, segment: SegmentNumber::default(), stamp, synced: Lsn::ZERO }
}
